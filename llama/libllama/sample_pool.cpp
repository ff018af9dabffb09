#include "sample_pool.h"

#include <algorithm>
#include <csignal>
#include <exception>

namespace b3 {

pool::~pool() {
    {
        std::lock_guard<std::mutex> lock(mu_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread & t : threads_) {
        t.join();
    }
}

void pool::run(task & t, int32_t parts, int32_t workers) {
    const int32_t helpers = start(std::min({workers, workers_, parts}) - 1);
    next_.store(0, std::memory_order_relaxed);
    {
        std::lock_guard<std::mutex> lock(mu_);
        task_   = &t;
        parts_  = parts;
        wanted_ = helpers;
    }
    for (int32_t i = 0; i < helpers; i++) {
        wake_.notify_one();
    }
    work(0);
    std::unique_lock<std::mutex> lock(mu_);
    wanted_ = 0; // who has not joined by now need not
    done_.wait(lock, [this] { return busy_ == 0; });
}

// start brings the threads up to a number and returns how many of these there
// are: the system may refuse one, and then fewer do. Signals are for Go's threads.
int32_t pool::start(int32_t helpers) {
    if ((int32_t) threads_.size() < helpers) {
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        try {
            while ((int32_t) threads_.size() < helpers) {
                threads_.emplace_back(&pool::loop, this, (int32_t) threads_.size() + 1);
            }
        } catch (const std::exception &) {
        }
        pthread_sigmask(SIG_SETMASK, &old, nullptr);
    }
    return std::clamp(helpers, 0, (int32_t) threads_.size());
}

void pool::loop(int32_t worker) {
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
        wake_.wait(lock, [this] { return stop_ || wanted_ > 0; });
        if (stop_) {
            return;
        }
        wanted_--;
        busy_++;
        lock.unlock();
        work(worker);
        lock.lock();
        if (--busy_ == 0) {
            done_.notify_one();
        }
    }
}

void pool::work(int32_t worker) {
    for (int32_t part; (part = next_.fetch_add(1, std::memory_order_relaxed)) < parts_;) {
        task_->run(part, worker);
    }
}

}  // namespace b3
