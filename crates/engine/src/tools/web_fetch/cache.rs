//! Pages that were fetched a moment ago: the model often asks more than one question about a page. Time comes in as a
//! value.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fetch::FetchedPage;
use super::network_scope::NetworkScope;

/// How long a page is kept.
const PAGE_TTL: Duration = Duration::from_secs(15 * 60);

/// How many pages are kept.
const MAX_PAGES: usize = 50;

/// How many bytes of text are kept.
const MAX_CACHED_BYTES: usize = 20 << 20;

/// The pages, oldest first. What one session may reach, another may not; so the reach is part of the key.
#[derive(Default)]
pub(super) struct PageCache {
    pages: Vec<CachedPage>,
}

struct CachedPage {
    url: String,
    scope: NetworkScope,
    page: Arc<FetchedPage>,
    fetched_at: Instant,
}

impl PageCache {
    /// A page, if it is kept.
    pub(super) fn get(&mut self, url: &str, reach: NetworkScope, now: Instant) -> Option<Arc<FetchedPage>> {
        self.pages.retain(|kept| now.duration_since(kept.fetched_at) < PAGE_TTL);
        self.pages.iter().find(|kept| kept.url == url && kept.scope == reach).map(|kept| kept.page.clone())
    }

    /// Keeps a page; the oldest ones make room for it.
    pub(super) fn insert(&mut self, url: String, reach: NetworkScope, page: Arc<FetchedPage>, now: Instant) {
        self.pages.retain(|kept| kept.url != url || kept.scope != reach);
        self.pages.push(CachedPage { url, scope: reach, page, fetched_at: now });
        while self.pages.len() > MAX_PAGES || self.total_bytes() > MAX_CACHED_BYTES {
            self.pages.remove(0);
        }
    }

    fn total_bytes(&self) -> usize {
        self.pages.iter().map(|kept| kept.page.text.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn page(size: usize) -> Arc<FetchedPage> {
        Arc::new(FetchedPage { status: 200, status_text: "OK", bytes: size, text: "x".repeat(size) })
    }

    #[test]
    fn a_page_is_kept_for_a_quarter_of_an_hour() {
        let (mut cache, now) = (PageCache::default(), clock::monotonic());
        cache.insert("a".into(), NetworkScope::Public, page(1), now);
        assert_eq!(cache.get("a", NetworkScope::Public, now + PAGE_TTL - Duration::from_millis(1)), Some(page(1)));
        assert_eq!(cache.get("b", NetworkScope::Public, now), None);
        assert_eq!(cache.get("a", NetworkScope::Private, now), None, "another reach");
        assert_eq!(cache.get("a", NetworkScope::Public, now + PAGE_TTL), None);
    }

    #[test]
    fn the_oldest_pages_make_room() {
        let (mut cache, now) = (PageCache::default(), clock::monotonic());
        for number in 0..=MAX_PAGES {
            cache.insert(number.to_string(), NetworkScope::Public, page(1), now);
        }
        assert_eq!((cache.pages.len(), cache.get("0", NetworkScope::Public, now)), (MAX_PAGES, None));
        cache.insert("large".into(), NetworkScope::Public, page(MAX_CACHED_BYTES - 1), now);
        assert_eq!(cache.pages.len(), 2);
        cache.insert("large".into(), NetworkScope::Public, page(MAX_CACHED_BYTES), now);
        assert_eq!((cache.pages.len(), cache.total_bytes()), (1, MAX_CACHED_BYTES));
    }
}
