//! Cache of recently fetched pages: the model often asks several questions about one. The current time is a parameter.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fetch::FetchedPage;
use super::network_scope::NetworkScope;

const PAGE_TTL: Duration = Duration::from_secs(15 * 60);

const MAX_PAGES: usize = 50;

const MAX_CACHED_BYTES: usize = 20 << 20;

/// The pages, oldest first. The network scope is part of the key, because sessions may differ in it.
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
    /// Returns a page that has not expired.
    pub(super) fn get(&mut self, url: &str, scope: NetworkScope, now: Instant) -> Option<Arc<FetchedPage>> {
        self.pages.retain(|page| now.duration_since(page.fetched_at) < PAGE_TTL);
        self.pages.iter().find(|page| page.url == url && page.scope == scope).map(|page| page.page.clone())
    }

    /// Adds a page and evicts the oldest ones beyond the limits.
    pub(super) fn insert(&mut self, url: String, scope: NetworkScope, page: Arc<FetchedPage>, now: Instant) {
        self.pages.retain(|cached| cached.url != url || cached.scope != scope);
        self.pages.push(CachedPage { url, scope, page, fetched_at: now });
        while self.pages.len() > MAX_PAGES || self.total_bytes() > MAX_CACHED_BYTES {
            self.pages.remove(0);
        }
    }

    fn total_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.page.text.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whimbrel_os::clock;

    fn page(size: usize) -> Arc<FetchedPage> {
        Arc::new(FetchedPage { status: 200, status_text: "OK", bytes: size, text: "x".repeat(size) })
    }

    #[test]
    fn a_page_expires_after_fifteen_minutes() {
        let (mut cache, now) = (PageCache::default(), clock::monotonic());
        cache.insert("a".into(), NetworkScope::Public, page(1), now);
        assert_eq!(
            cache.get("a", NetworkScope::Public, now + PAGE_TTL - Duration::from_millis(1)),
            Some(page(1))
        );
        assert_eq!(cache.get("b", NetworkScope::Public, now), None);
        assert_eq!(cache.get("a", NetworkScope::Private, now), None, "another scope");
        assert_eq!(cache.get("a", NetworkScope::Public, now + PAGE_TTL), None);
    }

    #[test]
    fn the_oldest_pages_are_evicted() {
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
