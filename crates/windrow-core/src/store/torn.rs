//! Maps of files that another program makes shorter: an error in place of the end of the process.
//!
//! Reading a page of a map that lies behind the end of its file raises SIGBUS, and so does a disk that cannot give the
//! page. The handler here puts zeros in the place of what is gone, marks the map as torn and lets the read go on. What
//! was read so may not reach anyone: whoever reads does it inside [`whole`], which sees that a map was torn meanwhile and
//! does the work again; by then the map answers with an error. Firefox, Sapling and systemd's journal meet such files
//! by a handler too.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use libc::{c_int, c_void, siginfo_t};

use crate::error::{Error, Kind, Result};

/// Maps that were torn so far, in the whole process.
static TORN: AtomicU64 = AtomicU64::new(0);

/// The newest place; each knows the one before.
static NEWEST: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

/// Places that no map has.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// From where on the next free one is looked for.
static NEXT: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

/// Whose turn SIGBUS was before.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    static THREAD: Thread = const { Thread { depth: Cell::new(0), begun: Cell::new(0) } };
}

struct Thread {
    /// How many works it is inside of.
    depth: Cell<u32>,
    /// Works it began, in this process.
    begun: Cell<u32>,
}

/// Does work that reads maps and gives away nothing before it is done. Where a map was torn meanwhile, by whichever
/// thread, the work is done again: a torn map answers with `Stale` then, and work that did not read it comes out right.
///
/// It costs some tens of nanoseconds each time, so whole samples and batches are such work, not single reads.
pub fn whole<T>(mut work: impl FnMut() -> T) -> T {
    loop {
        if let (done, false) = watched(&mut work) {
            return done;
        }
    }
}

/// The same for work that cannot be done twice, before what it made is given away: it fails where a map was torn
/// meanwhile, of whatever data.
///
/// # Errors
/// `Stale`; what the work says.
pub fn whole_at_once<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match watched(work) {
        (done, false) => done,
        // It says which.
        (Err(error), true) if error.kind() == Kind::Stale => Err(error),
        (_, true) => Err(Error::new(Kind::Stale, "a file became shorter while it was read")
            .hint("put a file in another's place by rename, and try again")),
    }
}

/// What the work gives, and whether a map was torn meanwhile.
fn watched<T>(work: impl FnOnce() -> T) -> (T, bool) {
    /// Others take the signal for themselves when they begin, as torch does in its workers: a thread, and a process
    /// that was forked, looks at each of so many works first,
    const FIRST: u32 = 64;
    /// then at every so-many-eth.
    const OFTEN: u32 = 32;
    THREAD.with(|thread| {
        let begun = thread.begun.get();
        thread.begun.set(begun.checked_add(1).unwrap_or(FIRST));
        if begun < FIRST || begun.is_multiple_of(OFTEN) {
            take_signal();
        }
        let before = TORN.load(Ordering::Acquire);
        let done = {
            let _inside = Inside::of(&thread.depth);
            work()
        };
        // What the work read was read before the look at the number.
        fence(Ordering::Acquire);
        (done, TORN.load(Ordering::Acquire) != before)
    })
}

/// A thread is inside of such work, until this is dropped: by a panic too.
struct Inside<'a>(&'a Cell<u32>);

impl Inside<'_> {
    fn of(depth: &Cell<u32>) -> Inside<'_> {
        depth.set(depth.get() + 1);
        Inside(depth)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A map whose pages the handler knows. It must be dropped before the map is.
pub(super) struct Watched(&'static Place);

impl Watched {
    /// Watches the bytes of a map.
    pub(super) fn new(map: &[u8]) -> Watched {
        take_signal();
        let place = Place::take();
        place.set(map.as_ptr().addr(), map.len());
        Watched(place)
    }

    /// Whether some of it is gone.
    pub(super) fn is_torn(&self) -> bool {
        self.0.torn.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.set(0, 0);
        self.0.taken.store(false, Ordering::Release);
        FREE.fetch_add(1, Ordering::Release);
    }
}

/// Where a map lies. A place is never given back, only used again: the handler may look at it at any time, and may wait for
/// nobody.
struct Place {
    taken: AtomicBool,
    /// Odd while the two below change.
    version: AtomicUsize,
    start: AtomicUsize,
    size: AtomicUsize,
    torn: AtomicBool,
    before: Option<&'static Place>,
}

impl Place {
    /// A free one, else a new one.
    fn take() -> &'static Place {
        let is_free = |count: usize| count.checked_sub(1);
        if FREE.fetch_update(Ordering::AcqRel, Ordering::Relaxed, is_free).is_ok() {
            // As many are free as are counted, so one is there for everyone who looks.
            let is_taken_now = |place: &&Place| {
                !place.taken.load(Ordering::Relaxed) && !place.taken.swap(true, Ordering::AcqRel)
            };
            loop {
                if let Some(place) = Place::from(&NEXT).chain(Place::from(&NEWEST)).find(is_taken_now) {
                    let next = place.before.map_or(ptr::null_mut(), |next| ptr::from_ref(next).cast_mut());
                    NEXT.store(next, Ordering::Release);
                    return place;
                }
            }
        }
        let place = Box::leak(Box::new(Place {
            taken: AtomicBool::new(true),
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            torn: AtomicBool::new(false),
            before: None,
        }));
        let mut newest = NEWEST.load(Ordering::Acquire);
        loop {
            // SAFETY: null, or a place that was leaked.
            place.before = unsafe { newest.as_ref() };
            match NEWEST.compare_exchange_weak(newest, place, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return place,
                Err(other) => newest = other,
            }
        }
    }

    fn from(first: &AtomicPtr<Place>) -> impl Iterator<Item = &'static Place> {
        // SAFETY: null, or a place that was leaked.
        let first: Option<&'static Place> = unsafe { first.load(Ordering::Acquire).as_ref() };
        std::iter::successors(first, |place| place.before)
    }

    fn set(&self, start: usize, size: usize) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.start.store(start, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
        self.torn.store(false, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Where the map lies and its size; `None` while it changes, which the map that is being read does not.
    fn extent(&self) -> Option<(usize, usize)> {
        let version = self.version.load(Ordering::Acquire);
        let extent = (self.start.load(Ordering::Relaxed), self.size.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_still = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        is_still.then_some(extent)
    }
}

/// Puts zeros where the map that holds this address is gone, from its page to the end; `false` when no map holds it. Safe
/// in a signal handler: atomics and one system call.
fn mend(address: usize) -> bool {
    let holds =
        |place: &&Place| place.extent().is_some_and(|(start, size)| address.wrapping_sub(start) < size);
    let Some(place) = Place::from(&NEWEST).find(holds) else { return false };
    let Some((start, size)) = place.extent() else { return false };
    // SAFETY: asks for a number.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let from = (address - start) / page * page;
    // Marked before a zero can be read: who reads one finds the mark.
    place.torn.store(true, Ordering::Release);
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
fn take_signal() {
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
