// Threads that sleep until there are rows to sample.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace b3 {

// A task is a number of independent parts. run must not throw; worker tells the
// parts that run at the same time apart.
class task {
  public:
    virtual void run(int32_t part, int32_t worker) noexcept = 0;

  protected:
    ~task() = default;
};

// pool spreads a task's parts over threads. They start when they are first
// needed and sleep between tasks. It is for one caller at a time.
class pool {
  public:
    // workers counts the caller, who is worker 0.
    explicit pool(int32_t workers) : workers_(workers) {}
    ~pool();
    pool(const pool &) = delete;

    int32_t workers() const { return workers_; }
    // run works on all parts, with at most so many workers, and returns when they
    // are done.
    void run(task & t, int32_t parts, int32_t workers);

  private:
    int32_t start(int32_t helpers);
    void loop(int32_t worker);
    void work(int32_t worker);

    const int32_t workers_;
    std::vector<std::thread> threads_;
    std::atomic<int32_t> next_{0}; // the part that is taken next
    std::mutex mu_;
    std::condition_variable wake_, done_;
    // Under mu_; but task_ and parts_ do not change while helpers are busy.
    task *  task_   = nullptr;
    int32_t parts_  = 0;
    int32_t wanted_ = 0; // helpers that may still join
    int32_t busy_   = 0; // helpers at work
    bool    stop_   = false;
};

}  // namespace b3
