//! URLs: which can be fetched. Pure.

use std::net::IpAddr;

use whimbrel_models::http::Url;

/// Parses and normalizes a URL of the model.
pub(super) fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| {
        format!("{text:?} is not a valid URL: {error}. Use a complete URL such as https://example.com/page.")
    })?;
    normalize(url)
}

/// Checks the scheme and upgrades to https, except for loopback addresses.
pub(super) fn normalize(mut url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("Only http and https URLs can be fetched, not {}:.", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("URLs with a user name or password are not fetched.".into());
    }
    url.set_fragment(None);
    if url.scheme() == "http" && !is_loopback(&url) && url.set_scheme("https").is_err() {
        return Err(format!("{url} cannot be fetched over https."));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    host == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_upgraded_to_https_or_rejected() {
        let table = [
            ("https stays", "https://a.org/x?y=1#part", Ok("https://a.org/x?y=1")),
            ("http is upgraded", " http://a.org ", Ok("https://a.org/")),
            ("with its port", "http://a.org:8080/", Ok("https://a.org:8080/")),
            ("loopback stays", "http://127.0.0.1:8080/", Ok("http://127.0.0.1:8080/")),
            ("loopback as a number", "http://2130706433/", Ok("http://127.0.0.1/")),
            ("loopback, v6", "http://[::1]/", Ok("http://[::1]/")),
            ("loopback by name", "http://localhost:3000/", Ok("http://localhost:3000/")),
            ("no scheme", "a.org/x", Err("https://example.com/page")),
            ("nothing", "", Err("is not a valid URL")),
            ("no host", "https://", Err("is not a valid URL")),
            ("a file", "file:///etc/passwd", Err("not file:")),
            ("a password", "https://me:secret@a.org/", Err("password")),
        ];
        for (name, text, expected) in table {
            match (parse_url(text), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected, "{name}"),
                (Err(error), Err(words)) => assert!(error.contains(words), "{name}: {error}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
    }
}
