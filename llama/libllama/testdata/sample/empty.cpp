// Tells whether a program can be linked.
int main() {}
