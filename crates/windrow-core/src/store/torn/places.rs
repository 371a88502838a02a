//! Where the maps lie, for a handler that may wait for nobody.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

/// The newest place; each knows the one before.
static NEWEST: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

/// Places that no map has.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// From where on the next free one is looked for.
static NEXT: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

/// A map whose pages the handler knows. It must be dropped before the map is.
pub(crate) struct Watched(&'static Place);

impl Watched {
    /// Watches the bytes of a map.
    pub(crate) fn new(map: &[u8]) -> Watched {
        let place = Place::take();
        place.set(map.as_ptr().addr(), map.len());
        Watched(place)
    }

    /// Whether some of it is gone.
    pub(crate) fn is_torn(&self) -> bool {
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
pub(super) struct Place {
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

    /// Says to whoever reads the map from now on that some of it is gone.
    pub(super) fn tear(&self) {
        self.torn.store(true, Ordering::Release);
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

/// The map that holds this address: its place, start and size.
pub(super) fn holding(address: usize) -> Option<(&'static Place, usize, usize)> {
    Place::from(&NEWEST).find_map(|place| {
        let (start, size) = place.extent()?;
        (address.wrapping_sub(start) < size).then_some((place, start, size))
    })
}
