/* The exchange of two names has no function of the C library that everybody calls: the system hands the call to us. */
#include "faults.h"
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* A system call that the filter lets through. */
#define LET_THROUGH 0x77696e64

static int exchanged(int a, const char *from, int b, const char *to, unsigned flags) {
#define EXCHANGE_IT ((int)syscall(SYS_renameat2, a, from, b, to, flags, LET_THROUGH))
    BY_TWO_PATHS(a, from, b, to, EXCHANGE_IT, flags & RENAME_EXCHANGE ? EXCHANGED : RENAMED);
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    int kept = errno;
#if defined(__x86_64__)
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    int done = exchanged(r[REG_RDI], (char *)r[REG_RSI], r[REG_RDX], (char *)r[REG_R10], r[REG_R8]);
    r[REG_RAX] = done < 0 ? -errno : done;
#elif defined(__aarch64__)
    unsigned long long *r = ((ucontext_t *)context)->uc_mcontext.regs;
    int done = exchanged(r[0], (char *)r[1], r[2], (char *)r[3], r[4]);
    r[0] = done < 0 ? -errno : done;
#else
    (void)context;
#endif
    errno = kept;
}

void trap_exchanges(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    static int is_trapped;
    if (is_trapped++) return;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LET_THROUGH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        fprintf(stderr, "faults: exchanges of names are not seen\n");
    }
#endif
}
