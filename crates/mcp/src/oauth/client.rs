//! OAuth client: configured by the user, or registered dynamically.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use serde_json::json;
use whimbrel_models::http::HttpClient;
use whimbrel_wire::options::OauthTerms;

use super::discovery::{AuthorizationServer, send_request};

const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// Client id and secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OauthClient {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<ClientSecret>,
}

/// Client secret, and where it is sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ClientSecret {
    /// In the form body (`client_secret_post`).
    Field(String),
    /// In the `Authorization` header (`client_secret_basic`).
    Header(String),
}

/// Response of dynamic client registration.
#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Returns the configured client, or registers one. The error text is for the user.
pub(super) async fn register_client(
    terms: &OauthTerms,
    secret: Option<String>,
    authorization_server: &AuthorizationServer,
    redirect_url: &str,
    http_client: &HttpClient,
) -> Result<OauthClient, String> {
    let methods = &authorization_server.token_endpoint_auth_methods_supported;
    if let Some(id) = terms.client_id.clone() {
        return Ok(OauthClient {
            id,
            secret: secret.map(|secret| choose_secret_method(secret, None, methods)),
        });
    }
    let unsupported = "Its authorization server does not support dynamic client registration. Register a client there, and set its id in `oauth.clientId` of the entry (whimbrel mcp add --client-id).";
    let endpoint = authorization_server.registration_endpoint.as_ref().ok_or(unsupported)?;
    let registration = json!({
        "client_name": "Whimbrel",
        "redirect_uris": [redirect_url],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
    let response =
        send_request(http_client, Method::POST, endpoint, headers, Bytes::from(registration.to_string()))
            .await?;
    let status = response.status;
    let text = response.read_prefix(MAX_RESPONSE_BYTES).await;
    match status {
        200..300 => {
            let registered: RegistrationResponse = serde_json::from_slice(&text).map_err(|error| {
                format!("{endpoint} registered the client, but its response is not valid: {error}.")
            })?;
            let method = registered.token_endpoint_auth_method.as_deref();
            let secret = registered.client_secret.filter(|_| method != Some("none"));
            Ok(OauthClient {
                id: registered.client_id,
                secret: secret.map(|secret| choose_secret_method(secret, method, methods)),
            })
        }
        404 | 405 => Err(unsupported.into()),
        _ => Err(format!(
            "{endpoint} rejected the client registration (HTTP {status}): {}",
            super::token::error_message(&text)
        )),
    }
}

/// Method of sending the secret: as agreed at registration, else one that the server supports.
fn choose_secret_method(secret: String, agreed: Option<&str>, methods: &[String]) -> ClientSecret {
    let is_supported = |method: &str| methods.iter().any(|known| known == method);
    match agreed {
        Some("client_secret_post") => ClientSecret::Field(secret),
        Some("client_secret_basic") => ClientSecret::Header(secret),
        _ if is_supported("client_secret_basic") || !is_supported("client_secret_post") => {
            ClientSecret::Header(secret)
        }
        _ => ClientSecret::Field(secret),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_method_follows_the_server() {
        for (agreed, methods, in_header) in [
            (None, &[][..], true),
            (None, &["client_secret_post"][..], false),
            (None, &["client_secret_post", "client_secret_basic"][..], true),
            (Some("client_secret_post"), &["client_secret_basic"][..], false),
            (Some("client_secret_basic"), &["client_secret_post"][..], true),
        ] {
            let methods: Vec<String> = methods.iter().map(|method| (*method).to_owned()).collect();
            let is_header =
                matches!(choose_secret_method("s".into(), agreed, &methods), ClientSecret::Header(_));
            assert_eq!(is_header, in_header, "{agreed:?} {methods:?}");
        }
    }
}
