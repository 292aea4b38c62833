//! Pages that were fetched a moment ago: the model often asks more than one question about a page. Time comes in as a
//! value.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fetch::Page;
use super::guard::Reach;

/// How long a page is kept.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// How many pages are kept.
const PAGES: usize = 50;

/// How many bytes of text are kept.
const BYTES: usize = 20 << 20;

/// The pages, oldest first. What one session may reach, another may not; so the reach is part of the key.
#[derive(Default)]
pub(super) struct Cache {
    kept: Vec<Kept>,
}

struct Kept {
    url: String,
    reach: Reach,
    page: Arc<Page>,
    since: Instant,
}

impl Cache {
    /// A page, if it is kept.
    pub(super) fn get(&mut self, url: &str, reach: Reach, now: Instant) -> Option<Arc<Page>> {
        self.kept.retain(|kept| now.duration_since(kept.since) < KEPT);
        self.kept.iter().find(|kept| kept.url == url && kept.reach == reach).map(|kept| kept.page.clone())
    }

    /// Keeps a page; the oldest ones make room for it.
    pub(super) fn put(&mut self, url: String, reach: Reach, page: Arc<Page>, now: Instant) {
        self.kept.retain(|kept| kept.url != url || kept.reach != reach);
        self.kept.push(Kept { url, reach, page, since: now });
        while self.kept.len() > PAGES || self.bytes() > BYTES {
            self.kept.remove(0);
        }
    }

    fn bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.page.text.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn page(size: usize) -> Arc<Page> {
        Arc::new(Page { status: 200, status_text: "OK", bytes: size, text: "x".repeat(size) })
    }

    #[test]
    fn a_page_is_kept_for_a_quarter_of_an_hour() {
        let (mut cache, now) = (Cache::default(), clock::monotonic());
        cache.put("a".into(), Reach::Public, page(1), now);
        assert_eq!(cache.get("a", Reach::Public, now + KEPT - Duration::from_millis(1)), Some(page(1)));
        assert_eq!(cache.get("b", Reach::Public, now), None);
        assert_eq!(cache.get("a", Reach::Private, now), None, "another reach");
        assert_eq!(cache.get("a", Reach::Public, now + KEPT), None);
    }

    #[test]
    fn the_oldest_pages_make_room() {
        let (mut cache, now) = (Cache::default(), clock::monotonic());
        for number in 0..=PAGES {
            cache.put(number.to_string(), Reach::Public, page(1), now);
        }
        assert_eq!((cache.kept.len(), cache.get("0", Reach::Public, now)), (PAGES, None));
        cache.put("large".into(), Reach::Public, page(BYTES - 1), now);
        assert_eq!(cache.kept.len(), 2);
        cache.put("large".into(), Reach::Public, page(BYTES), now);
        assert_eq!((cache.kept.len(), cache.bytes()), (1, BYTES));
    }
}
