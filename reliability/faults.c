/* Faults beneath a program: killed, refused, served in small parts, or recorded at its n-th call.
 *
 * Loaded before the C library (LD_PRELOAD). Only calls for files below one folder count. The environment steers it:
 *
 *   WINDROW_FAULT_BELOW   the folder, from the root; without it nothing is done
 *   WINDROW_FAULT         count (the default), kill, error, short or record
 *   WINDROW_FAULT_OF      which calls: change (the default), write, sync, read, map
 *   WINDROW_FAULT_AT      kill, error: at which of these calls, counted from 1
 *   WINDROW_FAULT_ERRNO   error: as this number
 *   WINDROW_FAULT_EVER    error: 1 for every call from there on
 *   WINDROW_FAULT_SEED    short: half of all reads and writes are short or interrupted
 *   WINDROW_FAULT_COUNTS  a file of at least 64 bytes for the counts of each of the five, and of faults: it outlives the process
 *   WINDROW_FAULT_LOG     record: the file that the changes are appended to
 *   WINDROW_FAULT_FAST    1: an fsync counts and is not made, for runs after which nobody pulls the plug
 *   WINDROW_FAULT_PARENT  1: the process ends with the one that started it
 *
 * A process that forks calls faults_begin() in the child, which reads the environment again.
 */
#include "faults.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum fault { COUNT, KILL, ERROR, SHORT, RECORD };

static char below[PATH_MAX];
static size_t below_size;
static enum fault fault;
static enum call of;
static uint64_t at, seed;
static int error_number, for_ever, fast, log_file = -1;
static _Atomic uint64_t own_counts[CALLS], draws;
static _Atomic uint64_t *counts = own_counts;
static pthread_mutex_t in_order = PTHREAD_MUTEX_INITIALIZER;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static int named(const char *value, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (!strcmp(value, names[i])) return i;
    fprintf(stderr, "faults: %s is not known\n", value);
    _exit(99);
}

__attribute__((constructor)) void faults_begin(void) {
    static const char *const faults[] = {"count", "kill", "error", "short", "record"};
    static const char *const calls[] = {"change", "write", "sync", "read", "map"};
    static uint64_t *mapped;
    snprintf(below, sizeof below, "%s", setting("WINDROW_FAULT_BELOW", ""));
    below_size = strlen(below);
    fault = named(setting("WINDROW_FAULT", "count"), faults, 5);
    of = named(setting("WINDROW_FAULT_OF", "change"), calls, 5);
    at = strtoull(setting("WINDROW_FAULT_AT", "0"), NULL, 10);
    error_number = atoi(setting("WINDROW_FAULT_ERRNO", "5"));
    for_ever = atoi(setting("WINDROW_FAULT_EVER", "0"));
    seed = strtoull(setting("WINDROW_FAULT_SEED", "0"), NULL, 10);
    fast = atoi(setting("WINDROW_FAULT_FAST", "0"));
    draws = 0;
    if (atoi(setting("WINDROW_FAULT_PARENT", "0"))) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (mapped) munmap(mapped, 64);
    mapped = NULL;
    counts = own_counts;
    int file = syscall(SYS_openat, AT_FDCWD, setting("WINDROW_FAULT_COUNTS", ""), O_RDWR | O_CLOEXEC, 0);
    if (file >= 0) {
        mapped = (uint64_t *)syscall(SYS_mmap, NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if ((void *)mapped == MAP_FAILED) mapped = NULL;
        else counts = (_Atomic uint64_t *)mapped;
        close(file);
    }
    if (log_file >= 0) close(log_file);
    const char *log = setting("WINDROW_FAULT_LOG", NULL);
    log_file = log ? syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (below_size) trap_exchanges();
}

/* Whether a path, by its letters alone, is below the folder; from the root in `out`. */
int path_below(int folder, const char *path, char *out) {
    char whole[2 * PATH_MAX];
    size_t begun = 0, size = 0;
    if (!below_size || !path) return 0;
    if (path[0] != '/' && folder == AT_FDCWD) {
        if (!getcwd(whole, PATH_MAX)) return 0;
        begun = strlen(whole);
    } else if (path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, whole, PATH_MAX - 1);
        if (length < 0) return 0;
        begun = length;
    }
    snprintf(whole + begun, sizeof whole - begun, "/%s", path);
    for (char *rest, *part = strtok_r(whole, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        if (!strcmp(part, ".")) continue;
        if (!strcmp(part, "..")) {
            while (size && out[--size] != '/') {}
            continue;
        }
        if (size + strlen(part) + 2 > PATH_MAX) return 0;
        out[size++] = '/';
        strcpy(out + size, part);
        size += strlen(part);
    }
    out[size] = 0;
    return !strncmp(out, below, below_size) && (out[below_size] == '/' || !out[below_size]);
}

/* Whether an open file is the folder, or has a name below it; that name in `out`. */
int file_below(int file, char *out) {
    char link[64];
    if (!below_size || file <= 2) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, out, PATH_MAX - 1);
    if (size < (ssize_t)below_size) return 0;
    out[size] = 0;
    return !strncmp(out, below, below_size) && (out[below_size] == '/' || !out[below_size]) && !strstr(out, " (deleted)");
}

/* Counts a call; true where it fails, with errno set. A change is also a write or a sync. */
int fails(enum call is) {
    uint64_t n = 0;
    if (is == WRITE || is == SYNC) n = ++counts[is];
    if (is == WRITE || is == SYNC || is == CHANGE) {
        uint64_t change = ++counts[CHANGE];
        if (of == CHANGE) n = change;
        else if (of != is) return 0;
    } else {
        n = ++counts[is];
        if (of != is) return 0;
    }
    if (fault == KILL && n == at) {
        counts[FIRED]++;
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (fault != ERROR || !(n == at || (for_ever && n > at))) return 0;
    counts[FIRED]++;
    errno = error_number;
    return 1;
}

/* The size that a read or write is given in the mode `short`; -1, with errno set, where it is interrupted. */
ssize_t shortened(size_t size) {
    if (fault != SHORT) return size;
    uint64_t draw = seed * 0x9e3779b97f4a7c15 + ++draws * 0xbf58476d1ce4e5b9;
    draw = (draw ^ (draw >> 30)) * 0xbf58476d1ce4e5b9;
    draw = (draw ^ (draw >> 27)) * 0x94d049bb133111eb;
    draw ^= draw >> 31;
    if (draw % 4 == 0) {
        counts[FIRED]++;
        errno = EINTR;
        return -1;
    }
    if (draw % 4 > 1 || size < 2) return size;
    counts[FIRED]++;
    return 1 + (draw >> 8) % (size - 1);
}

/* While changes are recorded, one is made at a time, so that the log has them in their order, under the names of that moment. */
void begin(void) { if (fault == RECORD) pthread_mutex_lock(&in_order); }
void begin_with(int file, char *name) {
    begin();
    if (fault == RECORD) file_below(file, name);
}
void end(void) {
    int kept = errno;
    if (fault == RECORD) pthread_mutex_unlock(&in_order);
    errno = kept;
}

void note(enum entry entry, const char *first, const char *second, uint64_t offset, const void *bytes, uint64_t size) {
    if (fault != RECORD || log_file < 0) return;
    struct { uint32_t entry, first, second, zero; uint64_t offset, size; } head = {
        entry, strlen(first), strlen(second), 0, offset, size,
    };
    struct iovec parts[] = {
        {&head, sizeof head}, {(void *)first, head.first}, {(void *)second, head.second}, {(void *)bytes, bytes ? size : 0},
    };
    size_t whole = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len + parts[3].iov_len;
    int kept = errno;
    if (syscall(SYS_writev, log_file, parts, 4) != (ssize_t)whole) {
        fprintf(stderr, "faults: the log cannot be written\n");
        _exit(98);
    }
    errno = kept;
}

int is_recording(void) { return fault == RECORD; }
int is_brought(void) { return !fast && fault != RECORD; }
