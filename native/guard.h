/* What would end the process inside a call (a wrong address, a trap) ends the call instead, so that it can be told at
 * which message. Other threads, and other times, keep the handlers that were there before.
 */
#ifndef TICDC_GUARD_H
#define TICDC_GUARD_H

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

enum { GUARDED_SIGNALS = 5 };
static const int guarded[GUARDED_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before_guard[GUARDED_SIGNALS];
static pthread_once_t guard_made = PTHREAD_ONCE_INIT;
static _Thread_local sigjmp_buf *guard_exit;

static void on_fault(int number) {
    if (guard_exit != NULL) {
        sigjmp_buf *to = guard_exit;
        guard_exit = NULL;
        siglongjmp(*to, 1);
    }
    for (int i = 0; i < GUARDED_SIGNALS; i++)
        if (guarded[i] == number) (void)sigaction(number, &before_guard[i], NULL);
    (void)raise(number); /* blocked until this handler has returned: then it meets the handler of before */
}

static void make_guard(void) {
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = 0};
    (void)sigemptyset(&action.sa_mask);
    for (int i = 0; i < GUARDED_SIGNALS; i++) (void)sigaction(guarded[i], &action, &before_guard[i]);
}

/* Of what is called under `GUARDED`: none of its variables may live in the frame to which a crash returns. */
#define APART __attribute__((noinline))

#define GUARDED(work, failed)                      \
    do {                                           \
        sigjmp_buf here;                           \
        (void)pthread_once(&guard_made, make_guard); \
        if (sigsetjmp(here, 1) == 0) {             \
            guard_exit = &here;                    \
            work;                                  \
            guard_exit = NULL;                     \
        } else {                                   \
            failed;                                \
        }                                          \
    } while (0)

#endif
