/* Kills the process before the n-th change that it makes to files: what a power cut or a SIGKILL there leaves on disk.
 *
 * Loaded before the C library (LD_PRELOAD); counts only after `kill_at_arm`. Each of these calls counts as one change.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static long left = -1;

/* Changes from now on: the n-th one, counted from 1, is not made. With 0 they are only counted. */
static long made = 0;
void kill_at_arm(long n) { left = n; made = 0; }
long kill_at_made(void) { return made; }

static void change(void) {
    if (left < 0) return;
    made++;
    if (made == left) kill(getpid(), SIGKILL);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int rename(const char *from, const char *to) { change(); return NEXT(rename)(from, to); }
int link(const char *from, const char *to) { change(); return NEXT(link)(from, to); }
int linkat(int a, const char *from, int b, const char *to, int f) { change(); return NEXT(linkat)(a, from, b, to, f); }
int unlink(const char *path) { change(); return NEXT(unlink)(path); }
int unlinkat(int folder, const char *path, int flags) { change(); return NEXT(unlinkat)(folder, path, flags); }
int rmdir(const char *path) { change(); return NEXT(rmdir)(path); }
int mkdir(const char *path, mode_t mode) { change(); return NEXT(mkdir)(path, mode); }
int ftruncate64(int file, off64_t size) { change(); return NEXT(ftruncate64)(file, size); }
int fsync(int file) { change(); return NEXT(fsync)(file); }

ssize_t write(int file, const void *bytes, size_t size) {
    if (file > 2) change();
    return NEXT(write)(file, bytes, size);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    if (file > 2) change();
    return NEXT(pwrite64)(file, bytes, size, at);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (flags & (O_CREAT | O_TRUNC)) change();
    return NEXT(open64)(path, flags, mode);
}
