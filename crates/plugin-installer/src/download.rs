//! Downloads a marketplace file from a web server.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{ACCEPT, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use serde_json::Value;
use whimbrel_config::plugins::marketplace::MAX_MARKETPLACE_BYTES;
use whimbrel_models::http::{HttpClient, RequestBody, Url};

use crate::error::InstallError;

const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(1);

/// Downloads a file. `headers` is an object of header values. Redirects are not followed.
pub(crate) async fn download(
    url: &str,
    headers: Option<&Value>,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<u8>, InstallError> {
    let failed = |cause: String| InstallError::Download { url: url.into(), cause };
    let address = Url::parse(url).map_err(|error| failed(error.to_string()))?;
    let headers = request_headers(headers).map_err(&failed)?;
    let client = HttpClient::from_env(|name| environment.get(name).cloned());
    let exchange = async {
        let response = client.request(Method::GET, address, headers, RequestBody::default()).await;
        let response = response.map_err(|error| error.to_string())?;
        if !(200..300).contains(&response.status) {
            return Err(format!("the server answers with status {}", response.status));
        }
        let limit = usize::try_from(MAX_MARKETPLACE_BYTES).unwrap_or(usize::MAX);
        response.read_all(limit).await.map_err(|error| error.to_string())
    };
    match tokio::time::timeout(DOWNLOAD_TIMEOUT, exchange).await {
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        Ok(Err(cause)) => Err(failed(cause.trim_end_matches('.').to_owned())),
        Err(_) => Err(failed("the server did not answer in time".into())),
    }
}

fn request_headers(given: Option<&Value>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    for (name, value) in given.and_then(Value::as_object).into_iter().flatten() {
        let invalid = || format!("the header {name} is not valid");
        let parsed: HeaderName = name.parse().map_err(|_| invalid())?;
        let value = value.as_str().ok_or_else(invalid)?;
        headers.insert(parsed, HeaderValue::from_str(value).map_err(|_| invalid())?);
    }
    Ok(headers)
}
