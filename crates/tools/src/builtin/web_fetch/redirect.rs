//! Redirects: how many are followed, and where they lead. Pure.

use whimbrel_models::http::{Response, Url};

use super::page_url::normalize;

pub(super) const MAX_REDIRECTS: usize = 5;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RedirectTarget {
    /// Followed automatically.
    SameHost(Url),
    /// Returned to the model, which decides.
    OtherHost(Url),
}

/// The target of a redirect response.
pub(super) fn redirect_location(response: &Response) -> Option<&str> {
    matches!(response.status, 301 | 302 | 303 | 307 | 308).then(|| response.header("location"))?
}

/// Resolves a redirect; fails if it cannot be followed.
pub(super) fn resolve_redirect(from: &Url, location: &str) -> Result<RedirectTarget, String> {
    let to = from.join(location).map_err(|error| format!("it leads to {location:?}: {error}."))?;
    let to = normalize(to)?;
    Ok(if to.host_str() == from.host_str() {
        RedirectTarget::SameHost(to)
    } else {
        RedirectTarget::OtherHost(to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_redirects_to_the_same_host_are_followed() {
        let from = Url::parse("https://a.org/x/y").unwrap();
        let url = |text: &str| Url::parse(text).unwrap();
        let table = [
            ("a path", "/z", Ok(RedirectTarget::SameHost(url("https://a.org/z")))),
            ("a name", "z", Ok(RedirectTarget::SameHost(url("https://a.org/x/z")))),
            ("back to http", "http://a.org/z", Ok(RedirectTarget::SameHost(url("https://a.org/z")))),
            ("another host", "https://b.org/z", Ok(RedirectTarget::OtherHost(url("https://b.org/z")))),
            ("a subdomain", "//www.a.org/", Ok(RedirectTarget::OtherHost(url("https://www.a.org/")))),
            ("a file", "file:///etc/passwd", Err("not file:")),
            ("a password", "https://me:secret@b.org/", Err("password")),
            ("nonsense", "https://", Err("leads to")),
        ];
        for (name, location, expected) in table {
            match (resolve_redirect(&from, location), expected) {
                (Ok(next), Ok(expected)) => assert_eq!(next, expected, "{name}"),
                (Err(error), Err(words)) => assert!(error.contains(words), "{name}: {error}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
    }
}
