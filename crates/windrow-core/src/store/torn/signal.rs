//! SIGBUS: what it means for a map of windrow's, and whose turn it is otherwise.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use libc::{c_int, c_void, siginfo_t};

use super::places::holding;
use super::{THREAD, TORN};

/// Whose turn SIGBUS was before.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Puts zeros where the map that holds this address is gone, from its page to the end; `false` when no map holds it. Safe
/// in a signal handler: atomics and one system call.
fn mend(address: usize) -> bool {
    let Some((place, start, size)) = holding(address) else { return false };
    // SAFETY: asks for a number.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let from = (address - start) / page * page;
    // Marked before a zero can be read: who reads one finds the mark.
    place.tear();
    TORN.fetch_add(1, Ordering::SeqCst);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED;
    // SAFETY: the pages belong to a map that this thread reads, so it is not dropped; a map begins with a page. They
    // stay readable, and were never written.
    let made = unsafe {
        let pages = ptr::without_provenance_mut::<c_void>(start + from);
        libc::mmap(pages, size - from, libc::PROT_READ, flags, -1, 0)
    };
    made != libc::MAP_FAILED
}

extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the system hands over what it knows of the signal.
    let (address, is_fault) = unsafe { ((*info).si_addr().addr(), (*info).si_code > 0) };
    if is_fault && THREAD.with(|thread| thread.depth.get() > 0) && mend(address) {
        return;
    }
    // Nothing of ours: as if this handler had not been. A fault comes again by itself.
    let previous = PREVIOUS.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: all zeros are the default action, without flags; what was kept is an action the system had given.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, previous.as_ref().unwrap_or(&default), ptr::null_mut());
        if !is_fault {
            libc::raise(signal);
        }
    }
}

/// Runs in the child, whose only thread is this one.
extern "C" fn on_fork() {
    THREAD.with(|thread| thread.begun.set(0));
}

/// Puts the handler in front of whatever is there, unless it is there itself.
pub(super) fn take_signal() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if !ASKED.swap(true, Ordering::Relaxed) {
        // SAFETY: the function stays where it is, and only sets a number of its thread.
        unsafe { libc::pthread_atfork(None, None, Some(on_fork)) };
    }
    let handler = on_bus_error as *const () as usize;
    // SAFETY: all zeros are an action; the handler has the signature that SA_SIGINFO wants, and does only what a handler
    // may. SA_ONSTACK as the standard library's own handler has it.
    unsafe {
        let mut found: libc::sigaction = MaybeUninit::zeroed().assume_init();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &mut found) != 0 || found.sa_sigaction == handler {
            return;
        }
        let mut ours: libc::sigaction = MaybeUninit::zeroed().assume_init();
        ours.sa_sigaction = handler;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&mut ours.sa_mask);
        if libc::sigaction(libc::SIGBUS, &ours, &mut found) == 0 && found.sa_sigaction != handler {
            // What was kept before stays where it is: the handler may be looking at it.
            PREVIOUS.store(Box::into_raw(Box::new(found)), Ordering::Release);
        }
    }
}
