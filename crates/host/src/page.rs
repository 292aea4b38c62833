//! The page: files that are built into the program, or served from a folder while one works on them.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The built files. `cargo xtask page` makes them.
const FILES: &[(&str, &[u8])] = &[
    ("index.html", include_bytes!("../page/dist/index.html")),
    ("page.js", include_bytes!("../page/dist/page.js")),
    ("page.css", include_bytes!("../page/dist/page.css")),
    ("highlight.js", include_bytes!("../page/dist/highlight.js")),
    ("icon.svg", include_bytes!("../page/dist/icon.svg")),
];

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types lit-html";

/// The files of the page.
#[derive(Debug)]
pub(crate) enum Page {
    /// Those of the program.
    BuiltIn { hash: OnceLock<String>, compressed: OnceLock<Vec<(&'static str, Bytes)>> },
    /// Those of a folder.
    Folder(PathBuf),
}

impl Page {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        match folder {
            Some(folder) => Self::Folder(folder),
            None => Self::BuiltIn { hash: OnceLock::new(), compressed: OnceLock::new() },
        }
    }

    /// The shell, which all pages share.
    pub(crate) async fn shell(&self, headers: &HeaderMap) -> Response {
        match self {
            Self::Folder(folder) => {
                let shell = tokio::fs::read_to_string(folder.join("index.html")).await.unwrap_or_default();
                respond("index.html", Bytes::from(shell.replace("{hash}", "dev")), Cache::Never, false)
            }
            Self::BuiltIn { .. } => {
                let packed = accepts_gzip(headers);
                respond(
                    "index.html",
                    self.built_in("index.html", packed).unwrap_or_default(),
                    Cache::Never,
                    packed,
                )
            }
        }
    }

    /// A file below `/app/HASH/`.
    pub(crate) async fn file(&self, hash: &str, name: &str, headers: &HeaderMap) -> Response {
        let not_found = || {
            let mut response = Response::new(Body::from("not found"));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        };
        let Some((name, _)) = FILES.iter().find(|(known, _)| *known == name) else { return not_found() };
        match self {
            Self::Folder(folder) => match tokio::fs::read(folder.join(name)).await {
                Ok(content) => respond(name, content.into(), Cache::Never, false),
                Err(_) => not_found(),
            },
            Self::BuiltIn { .. } if hash == self.hash() => {
                let packed = accepts_gzip(headers);
                let content = self.built_in(name, packed).unwrap_or_default();
                respond(name, content, Cache::Forever, packed)
            }
            Self::BuiltIn { .. } => not_found(),
        }
    }

    fn hash(&self) -> &str {
        match self {
            Self::Folder(_) => "dev",
            Self::BuiltIn { hash, .. } => hash.get_or_init(|| {
                use sha2::{Digest as _, Sha256};
                let mut all = Sha256::new();
                FILES.iter().for_each(|(_, content)| all.update(content));
                all.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
            }),
        }
    }

    fn built_in(&self, name: &str, packed: bool) -> Option<Bytes> {
        let (_, content) = FILES.iter().find(|(known, _)| *known == name)?;
        let content = match name {
            "index.html" => Bytes::from(String::from_utf8_lossy(content).replace("{hash}", self.hash())),
            _ => Bytes::from_static(content),
        };
        if !packed {
            return Some(content);
        }
        let Self::BuiltIn { compressed, .. } = self else { return Some(content) };
        let all = compressed.get_or_init(|| {
            let pack = |(name, _): &(&'static str, &[u8])| Some((*name, gzip(&self.built_in(name, false)?)));
            FILES.iter().filter_map(pack).collect()
        });
        all.iter().find(|(known, _)| *known == name).map(|(_, packed)| packed.clone())
    }
}

fn gzip(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(content);
    encoder.finish().unwrap_or_default().into()
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|value| value.split(',').any(|part| part.trim().starts_with("gzip")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    Never,
    Forever,
}

fn respond(name: &str, content: Bytes, cache: Cache, packed: bool) -> Response {
    let content_type = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, content_type)
        .header(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY)
        .header("cross-origin-opener-policy", "same-origin")
        .header(header::VARY, "accept-encoding");
    response = response.header(
        header::CACHE_CONTROL,
        match cache {
            Cache::Never => "no-store",
            Cache::Forever => "public, max-age=31536000, immutable",
        },
    );
    if packed {
        response = response.header(header::CONTENT_ENCODING, "gzip");
    }
    // The headers above are all valid.
    response.body(Body::from(content)).unwrap_or_default()
}
