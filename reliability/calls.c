/* The calls of the C library that change, read or map files, each of which may be counted, refused or recorded. */
#include "faults.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A change by path: counted, made, and noted. */
#define BY_PATH(folder, path, made, noted)                       \
    char name[PATH_MAX];                                         \
    if (!path_below(folder, path, name)) return made;            \
    if (fails(CHANGE)) return -1;                                \
    begin();                                                     \
    int done = made;                                             \
    if (done == 0) noted;                                        \
    end();                                                       \
    return done

int rename(const char *from, const char *to) {
    BY_TWO_PATHS(AT_FDCWD, from, AT_FDCWD, to, NEXT(rename)(from, to), RENAMED);
}
int renameat(int a, const char *from, int b, const char *to) {
    BY_TWO_PATHS(a, from, b, to, NEXT(renameat)(a, from, b, to), RENAMED);
}
int link(const char *from, const char *to) {
    BY_TWO_PATHS(AT_FDCWD, from, AT_FDCWD, to, NEXT(link)(from, to), LINKED);
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
    BY_TWO_PATHS(a, from, b, to, NEXT(linkat)(a, from, b, to, flags), LINKED);
}
int unlink(const char *path) {
    BY_PATH(AT_FDCWD, path, NEXT(unlink)(path), note(UNLINKED, name, "", 0, NULL, 0));
}
int unlinkat(int folder, const char *path, int flags) {
    BY_PATH(folder, path, NEXT(unlinkat)(folder, path, flags),
            note(flags & AT_REMOVEDIR ? REMOVED : UNLINKED, name, "", 0, NULL, 0));
}
int rmdir(const char *path) {
    BY_PATH(AT_FDCWD, path, NEXT(rmdir)(path), note(REMOVED, name, "", 0, NULL, 0));
}
int mkdir(const char *path, mode_t mode) {
    BY_PATH(AT_FDCWD, path, NEXT(mkdir)(path, mode), note(MADE, name, "", 0, NULL, 0));
}
int mkdirat(int folder, const char *path, mode_t mode) {
    BY_PATH(folder, path, NEXT(mkdirat)(folder, path, mode), note(MADE, name, "", 0, NULL, 0));
}
int fchmod(int file, mode_t mode) {
    char name[PATH_MAX];
    if (file_below(file, name) && fails(CHANGE)) return -1;
    return NEXT(fchmod)(file, mode);
}
int futimens(int file, const struct timespec times[2]) {
    char name[PATH_MAX];
    if (file_below(file, name) && fails(CHANGE)) return -1;
    return NEXT(futimens)(file, times);
}

static int cut(int file, off64_t size) {
    char name[PATH_MAX];
    if (!file_below(file, name)) return NEXT(ftruncate64)(file, size);
    if (fails(CHANGE)) return -1;
    begin_with(file, name);
    int done = NEXT(ftruncate64)(file, size);
    if (done == 0) note(TRUNCATED, name, "", size, NULL, 0);
    end();
    return done;
}
int ftruncate(int file, off_t size) { return cut(file, size); }
int ftruncate64(int file, off64_t size) { return cut(file, size); }

static int allocate(int file, int mode, off64_t from, off64_t size) {
    char name[PATH_MAX];
    if (!file_below(file, name)) return NEXT(fallocate64)(file, mode, from, size);
    if (fails(CHANGE)) return -1;
    begin_with(file, name);
    int done = NEXT(fallocate64)(file, mode, from, size);
    struct stat now;
    if (done == 0 && fstat(file, &now) == 0) note(TRUNCATED, name, "", now.st_size, NULL, 0);
    end();
    return done;
}
int fallocate(int file, int mode, off_t from, off_t size) { return allocate(file, mode, from, size); }
int fallocate64(int file, int mode, off64_t from, off64_t size) { return allocate(file, mode, from, size); }

static int synced(int file, int (*sync)(int)) {
    char name[PATH_MAX];
    if (!file_below(file, name)) return sync(file);
    if (fails(SYNC)) return -1;
    begin_with(file, name);
    int done = is_brought() ? sync(file) : 0;
    if (done == 0) note(SYNCED, name, "", 0, NULL, 0);
    end();
    return done;
}
int fsync(int file) { return synced(file, NEXT(fsync)); }
int fdatasync(int file) { return synced(file, NEXT(fdatasync)); }

static ssize_t written(int file, const void *bytes, size_t size, off64_t to, int is_at) {
    char name[PATH_MAX];
#define WRITE_IT(n) (is_at ? NEXT(pwrite64)(file, bytes, n, to) : NEXT(write)(file, bytes, n))
    if (!file_below(file, name)) return WRITE_IT(size);
    if (fails(WRITE)) return -1;
    ssize_t part = shortened(size);
    if (part < 0) return -1;
    begin_with(file, name);
    ssize_t done = WRITE_IT(part);
    // What is appended was written where the file ends now.
    if (done > 0) note(WRITTEN, name, "", is_at ? to : lseek(file, 0, SEEK_CUR) - done, bytes, done);
    end();
    return done;
}
ssize_t write(int file, const void *bytes, size_t size) { return written(file, bytes, size, 0, 0); }
ssize_t pwrite(int file, const void *bytes, size_t size, off_t to) { return written(file, bytes, size, to, 1); }
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t to) { return written(file, bytes, size, to, 1); }
// A writer is content with less than it asked for: the first part that holds something.
ssize_t writev(int file, const struct iovec *parts, int n) {
    char name[PATH_MAX];
    if (!file_below(file, name)) return NEXT(writev)(file, parts, n);
    while (n > 1 && !parts->iov_len) parts++, n--;
    return written(file, parts->iov_base, parts->iov_len, 0, 0);
}

static ssize_t was_read(int file, void *bytes, size_t size, off64_t from, int is_at) {
    char name[PATH_MAX];
    if (file_below(file, name)) {
        if (fails(READ)) return -1;
        ssize_t part = shortened(size);
        if (part < 0) return -1;
        size = part;
    }
    return is_at ? NEXT(pread64)(file, bytes, size, from) : NEXT(read)(file, bytes, size);
}
ssize_t read(int file, void *bytes, size_t size) { return was_read(file, bytes, size, 0, 0); }
ssize_t pread(int file, void *bytes, size_t size, off_t from) { return was_read(file, bytes, size, from, 1); }
ssize_t pread64(int file, void *bytes, size_t size, off64_t from) { return was_read(file, bytes, size, from, 1); }
ssize_t readv(int file, const struct iovec *parts, int n) {
    char name[PATH_MAX];
    if (!file_below(file, name)) return NEXT(readv)(file, parts, n);
    while (n > 1 && !parts->iov_len) parts++, n--;
    return was_read(file, parts->iov_base, parts->iov_len, 0, 0);
}

// Whoever copies within the system falls back to reading and writing where it cannot, which is what is recorded.
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
    char name[PATH_MAX];
    if (file_below(to, name)) {
        if (is_recording()) return errno = ENOSYS, -1;
        if (fails(WRITE)) return -1;
        ssize_t part = shortened(size);
        if (part < 0) return -1;
        size = part;
    }
    return NEXT(copy_file_range)(from, a, to, b, size, flags);
}
ssize_t sendfile64(int to, int from, off64_t *at_byte, size_t size) {
    char name[PATH_MAX];
    if (file_below(to, name)) {
        if (is_recording()) return errno = ENOSYS, -1;
        if (fails(WRITE)) return -1;
    }
    return NEXT(sendfile64)(to, from, at_byte, size);
}

static void *mapped(void *where, size_t size, int may, int flags, int file, off64_t from) {
    char name[PATH_MAX];
    if (file >= 0 && file_below(file, name) && fails(MAP)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, where, size, may, flags, file, from);
}
void *mmap(void *where, size_t size, int may, int flags, int file, off_t from) {
    return mapped(where, size, may, flags, file, from);
}
void *mmap64(void *where, size_t size, int may, int flags, int file, off64_t from) {
    return mapped(where, size, may, flags, file, from);
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char name[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !path_below(folder, path, name)) {
        return NEXT(openat64)(folder, path, flags, mode);
    }
    if (fails(CHANGE)) return -1;
    begin();
    struct stat before;
    int was_there = fstatat(folder, path, &before, 0) == 0;
    int file = NEXT(openat64)(folder, path, flags, mode);
    if (file >= 0 && !was_there) note(CREATED, name, "", 0, NULL, 0);
    if (file >= 0 && was_there && flags & O_TRUNC && before.st_size) note(TRUNCATED, name, "", 0, NULL, 0);
    end();
    return file;
}
#define WITH_MODE(call)                                          \
    va_list rest;                                                \
    va_start(rest, flags);                                       \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                \
    return call
int open(const char *path, int flags, ...) { WITH_MODE(opened(AT_FDCWD, path, flags, mode)); }
int open64(const char *path, int flags, ...) { WITH_MODE(opened(AT_FDCWD, path, flags, mode)); }
int openat(int folder, const char *path, int flags, ...) { WITH_MODE(opened(folder, path, flags, mode)); }
int openat64(int folder, const char *path, int flags, ...) { WITH_MODE(opened(folder, path, flags, mode)); }
