/* What the parts of the library of faults share: see faults.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

enum call { CHANGE, WRITE, SYNC, READ, MAP, FIRED, CALLS };

enum entry { CREATED = 1, TRUNCATED, WRITTEN, SYNCED, RENAMED, LINKED, UNLINKED, REMOVED, MADE, EXCHANGED };

/* Names of our own are for these files alone, not for the program. */
#pragma GCC visibility push(hidden)
/* Whether a path, or an open file, is below the folder; its name from the root in `out`, of PATH_MAX bytes. */
int path_below(int folder, const char *path, char *out);
int file_below(int file, char *out);
/* Counts a call; true where it fails, with errno set. */
int fails(enum call is);
/* The size that a read or write is given in the mode `short`; -1, with errno set, where it is interrupted. */
ssize_t shortened(size_t size);
/* Around a change that is recorded; `begin_with` asks for the file's name once more. */
void begin(void);
void begin_with(int file, char *name);
void end(void);
void note(enum entry entry, const char *first, const char *second, uint64_t offset, const void *bytes, uint64_t size);
int is_recording(void);
/* Whether an fsync is made. */
int is_brought(void);
void trap_exchanges(void);
#pragma GCC visibility pop

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A change by two paths: counted, made, and noted. */
#define BY_TWO_PATHS(one, from, two, to, made, entry)            \
    char first[PATH_MAX], second[PATH_MAX];                      \
    int is_below = path_below(one, from, first);                 \
    if (!(path_below(two, to, second) | is_below)) return made;  \
    if (fails(CHANGE)) return -1;                                \
    begin();                                                     \
    int done = made;                                             \
    if (done == 0) note(entry, first, second, 0, NULL, 0);       \
    end();                                                       \
    return done
