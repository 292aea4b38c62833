//! Who may use the host: login codes, cookies of devices, bearer keys.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};

use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::store::access::{NewToken, Person, TokenRow};
use crate::store::{Store, StoreError};

/// Wrong codes in a row that lock logins.
const MAX_WRONG_CODES: u32 = 10;

const LOCK_TIME: Duration = Duration::from_secs(60);

/// A cookie is valid for 90 days.
pub(crate) const COOKIE_MAX_AGE_S: u64 = 7_776_000;

/// How a request is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    Cookie,
    Bearer,
}

/// A request of a person who is signed in.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    pub(crate) person: Person,
    pub(crate) token: String,
    pub(crate) credential: Credential,
}

/// Counts wrong login codes.
#[derive(Debug, Default)]
pub(crate) struct LoginGuard {
    state: Mutex<LoginState>,
}

#[derive(Debug, Default)]
struct LoginState {
    wrong: u32,
    locked_until: Option<Instant>,
}

impl LoginGuard {
    fn check(&self) -> ApiResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = state.locked_until else { return Ok(()) };
        let now = clock::monotonic();
        if now < until {
            let seconds = (until - now).as_secs() + 1;
            return Err(ApiError::slow_down(format!("too many wrong codes: try again in {seconds} s"))
                .with_retry_after(seconds));
        }
        *state = LoginState::default();
        Ok(())
    }

    fn count_wrong(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wrong += 1;
        if state.wrong >= MAX_WRONG_CODES {
            state.locked_until = Some(clock::monotonic() + LOCK_TIME);
            crate::log::report(&format!(
                "{MAX_WRONG_CODES} wrong login codes: logins are locked for {} s",
                LOCK_TIME.as_secs()
            ));
        }
    }

    fn reset(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = LoginState::default();
    }
}

/// Signs a device in with a code; returns the secret of its cookie.
pub(crate) async fn login(
    store: &Store,
    guard: &LoginGuard,
    code: &str,
    device: &str,
) -> ApiResult<(String, Person)> {
    guard.check()?;
    let wrong = || {
        ApiError::not_signed_in("the code is wrong, used or too old: get a new one by `whimbrel serve login`")
    };
    let token = find_token(store, code.trim()).await?.filter(|token| token.kind == "code");
    let Some(token) = token else {
        guard.count_wrong();
        return Err(wrong());
    };
    if !store.use_code(&token.id).await? {
        guard.count_wrong();
        return Err(wrong());
    }
    guard.reset();
    let secret = clock::new_secret();
    let name = if device.trim().is_empty() { "browser" } else { device.trim() };
    let ends_at = clock::now_ms() + i64::try_from(COOKIE_MAX_AGE_S * 1000).unwrap_or(i64::MAX / 2);
    let new =
        NewToken { person: &token.person.id, kind: "device", name, secret: &secret, ends_at: Some(ends_at) };
    store.add_token(new).await?;
    Ok((secret, token.person))
}

/// The valid token of a secret.
async fn find_token(store: &Store, secret: &str) -> Result<Option<TokenRow>, StoreError> {
    if secret.is_empty() || secret.len() > 200 {
        return Ok(None);
    }
    let hash = clock::digest(secret);
    let token = store.token_by_hash(&hash).await?;
    let now = clock::now_ms();
    // The lookup is by hash: its time says nothing about a secret of 256 random bits.
    Ok(token.filter(|token| token.ends_at.is_none_or(|ends| ends > now) && token.used_at.is_none()))
}

/// Authenticates a request by its key or cookie.
pub(crate) async fn authenticate(
    store: &Store,
    headers: &HeaderMap,
    cookie_name: &str,
) -> ApiResult<Option<SignedIn>> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (secret, credential) = match bearer.and_then(|value| value.strip_prefix("Bearer ")) {
        Some(key) => (key.trim().to_owned(), Credential::Bearer),
        None => match cookie(headers, cookie_name) {
            Some(secret) => (secret, Credential::Cookie),
            None => return Ok(None),
        },
    };
    let token = find_token(store, &secret).await?.filter(|token| match credential {
        Credential::Cookie => token.kind == "device",
        Credential::Bearer => matches!(token.kind.as_str(), "key" | "file"),
    });
    let Some(token) = token else { return Ok(None) };
    const SEEN_INTERVAL_MS: i64 = 60_000;
    if token.seen_at.is_none_or(|seen| clock::now_ms() - seen > SEEN_INTERVAL_MS) {
        store.touch_token(&token.id).await?;
    }
    Ok(Some(SignedIn { person: token.person, token: token.id, credential }))
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';')).find_map(|part| {
        let (key, value) = part.trim().split_once('=')?;
        (key == name).then(|| value.to_owned())
    })
}

/// A new login code; it works once.
pub(crate) async fn new_code(
    store: &Store,
    person: &str,
    lasts_s: u64,
) -> Result<(String, String, i64), StoreError> {
    let secret = clock::new_secret();
    let ends_at = clock::now_ms() + i64::try_from(lasts_s.saturating_mul(1000)).unwrap_or(i64::MAX / 2);
    let new = NewToken { person, kind: "code", name: "login code", secret: &secret, ends_at: Some(ends_at) };
    Ok((store.add_token(new).await?, secret, ends_at))
}

/// A new bearer key.
pub(crate) async fn new_key(store: &Store, person: &str, name: &str) -> Result<(String, String), StoreError> {
    let secret = format!("wk_{}", clock::new_secret());
    let new = NewToken { person, kind: "key", name, secret: &secret, ends_at: None };
    Ok((store.add_token(new).await?, secret))
}

/// Reads the owner's key from a file, or writes a fresh one.
pub(crate) async fn load_token_file(store: &Store, owner: &str, path: &Path) -> Result<(), String> {
    const MIN_KEY: usize = 46;
    let remedy = |text: String| format!("--token-file {}: {text}", path.display());
    let key = match std::fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = format!("wk_{}", clock::new_secret());
            write_private(path, &key).map_err(|error| remedy(error.to_string()))?;
            key
        }
        Err(error) => return Err(remedy(error.to_string())),
    };
    if !key.starts_with("wk_") || key.len() < MIN_KEY || key.contains(char::is_whitespace) {
        return Err(remedy(
            "the file must have one line, wk_ and at least 43 characters. Delete it to get a fresh key"
                .into(),
        ));
    }
    let new = NewToken { person: owner, kind: "file", name: "token file", secret: &key, ends_at: None };
    store.delete_file_tokens().await.map_err(|error| error.to_string())?;
    store.add_token(new).await.map(drop).map_err(|error| error.to_string())
}

fn write_private(path: &Path, key: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{key}")
}

/// Only an owner or an admin may switch permission checks off.
pub(crate) fn check_may_bypass(person: &Person) -> ApiResult<()> {
    match person.role.as_str() {
        "owner" | "admin" => Ok(()),
        _ => Err(ApiError::not_allowed("only an owner or an admin may bypass permissions")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn store() -> (Store, tempfile::TempDir, Person) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let owner = store.owner("ann").await.unwrap();
        (store, dir, owner)
    }

    #[tokio::test]
    async fn a_code_works_once_and_signs_a_device_in() {
        let (store, _dir, owner) = store().await;
        let guard = LoginGuard::default();
        let (_, code, _) = new_code(&store, &owner.id, 600).await.unwrap();
        let (secret, person) = login(&store, &guard, &code, "phone").await.unwrap();
        assert_eq!(person, owner);
        assert_eq!(login(&store, &guard, &code, "phone").await.unwrap_err().code, "not_signed_in");
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, format!("a=b; whimbrel={secret}").parse().unwrap());
        let signed_in = authenticate(&store, &headers, "whimbrel").await.unwrap().unwrap();
        assert_eq!((signed_in.person, signed_in.credential), (owner, Credential::Cookie));
    }

    #[tokio::test]
    async fn an_old_code_is_refused() {
        let (store, _dir, owner) = store().await;
        let (_, code, _) = new_code(&store, &owner.id, 0).await.unwrap();
        let refused = login(&store, &LoginGuard::default(), &code, "").await.unwrap_err();
        assert_eq!(refused.code, "not_signed_in");
    }

    #[tokio::test]
    async fn ten_wrong_codes_lock_logins() {
        let (store, _dir, owner) = store().await;
        let guard = LoginGuard::default();
        for _ in 0..MAX_WRONG_CODES {
            assert_eq!(login(&store, &guard, "wrong", "").await.unwrap_err().code, "not_signed_in");
        }
        let (_, code, _) = new_code(&store, &owner.id, 600).await.unwrap();
        let locked = login(&store, &guard, &code, "").await.unwrap_err();
        assert_eq!((locked.code, locked.retry_after_s.is_some()), ("slow_down", true));
    }

    #[tokio::test]
    async fn a_key_is_no_cookie_and_a_code_is_no_key() {
        let (store, _dir, owner) = store().await;
        let (_, key) = new_key(&store, &owner.id, "script").await.unwrap();
        let (_, code, _) = new_code(&store, &owner.id, 600).await.unwrap();
        let signed_in = async |name, value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            authenticate(&store, &headers, "whimbrel").await.unwrap().is_some()
        };
        assert!(signed_in(header::AUTHORIZATION, format!("Bearer {key}")).await);
        assert!(!signed_in(header::AUTHORIZATION, format!("Bearer {code}")).await);
        assert!(!signed_in(header::COOKIE, format!("whimbrel={key}")).await);
    }
}
