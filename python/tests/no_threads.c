/* Refuses threads, as a system does whose limit on processes is reached.
 *
 * Loaded before the C library (LD_PRELOAD); refuses only while it is armed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static int armed = 0, refused = 0;

void no_threads_arm(int on) { armed = on; refused = 0; }
int no_threads_refused(void) { return refused; }

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *what) {
    if (armed) {
        refused++;
        return EAGAIN;
    }
    return ((__typeof__(&pthread_create))dlsym(RTLD_NEXT, "pthread_create"))(thread, how, run, what);
}
