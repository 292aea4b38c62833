//! The Messages API with a fetched key: a rejected key is fetched again, once.

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::Anthropic;
use crate::error::{ModelError, ModelErrorKind};
use crate::key_source::KeySource;
use crate::model::{Model, ReplyItem};
use crate::request::{OptionalPart, Request};

/// A Messages API client with a key source.
pub(crate) struct KeyRefreshingModel {
    server: Arc<Anthropic>,
    source: Arc<dyn KeySource>,
}

impl KeyRefreshingModel {
    pub(crate) fn new(server: Arc<Anthropic>, source: Arc<dyn KeySource>) -> Self {
        Self { server, source }
    }
}

impl Model for KeyRefreshingModel {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        let (server, source) = (Arc::clone(&self.server), Arc::clone(&self.source));
        stream::once(async move {
            let key = source.fetch_key(None).await?;
            match server.open_reply(Arc::clone(&request), Some(&key)).await {
                Err(error) if error.kind == ModelErrorKind::Authentication => {
                    let new_key = source.fetch_key(Some(key.clone())).await?;
                    // The same key would be rejected again.
                    if new_key == key { Err(error) } else { server.open_reply(request, Some(&new_key)).await }
                }
                opened => opened,
            }
        })
        .try_flatten()
        .boxed()
    }

    fn mark_unsupported(&self, model: &str, part: &OptionalPart) {
        self.server.mark_unsupported(model, part);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::BoxFuture;
    use whimbrel_wire::{Block, Role};

    use super::*;
    use crate::history::History;
    use crate::http::HttpClient;
    use crate::request::RequestPrefix;
    use crate::test_server::{ResponseAction, TestServer, response};

    /// Returns these keys in order, the last one repeatedly, and records which were rejected.
    struct FakeKeySource {
        keys: Mutex<Vec<&'static str>>,
        rejected: Mutex<Vec<Option<String>>>,
    }

    impl KeySource for FakeKeySource {
        fn fetch_key(&self, rejected: Option<String>) -> BoxFuture<'_, Result<String, ModelError>> {
            let mut keys = self.keys.lock().unwrap();
            if rejected.is_some() && keys.len() > 1 {
                keys.remove(0);
            }
            self.rejected.lock().unwrap().push(rejected);
            let key = keys[0].to_owned();
            Box::pin(std::future::ready(Ok(key)))
        }
    }

    fn unauthorized_response() -> Vec<ResponseAction> {
        response(401, "", r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#)
    }

    fn ok_response() -> Vec<ResponseAction> {
        let body = r#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;
        response(200, "content-type: application/json\r\n", body)
    }

    #[tokio::test]
    async fn rejected_key_is_fetched_again_once() {
        let rows = [
            ("good at once", vec![ok_response()], vec!["a"], vec!["a"], None),
            (
                "good the second time",
                vec![unauthorized_response(), ok_response()],
                vec!["a", "b"],
                vec!["a", "b"],
                None,
            ),
            ("the same again", vec![unauthorized_response()], vec!["a"], vec!["a"], Some("apiKeyHelper")),
            (
                "never good",
                vec![unauthorized_response(), unauthorized_response()],
                vec!["a", "b", "c"],
                vec!["a", "b"],
                Some("apiKeyHelper"),
            ),
        ];
        for (name, responses, keys, expected, error) in rows {
            let server = TestServer::start(responses).await;
            let source = Arc::new(FakeKeySource { keys: Mutex::new(keys), rejected: Mutex::default() });
            // The key of the helper goes before an OAuth token.
            let variables = |name: &str| match name {
                "ANTHROPIC_BASE_URL" => Some(server.url.clone()),
                "CLAUDE_CODE_OAUTH_TOKEN" => Some("oauth".to_owned()),
                _ => None,
            };
            let api = Anthropic::from_env(variables, HttpClient::from_env(|_| None));
            let model = KeyRefreshingModel::new(Arc::new(api), source);
            let mut history = History::new();
            history.push(Role::User, &Block::text("hi"));
            let request = Request::new("m", Arc::new(RequestPrefix::new(vec![], vec![])), history.snapshot());
            let last = model.stream_reply(Arc::new(request)).collect::<Vec<_>>().await.pop().unwrap();
            let requests = server.requests();
            let sent: Vec<_> =
                requests.iter().map(|requests| requests.header("x-api-key").unwrap()).collect();
            assert_eq!(sent, expected, "{name}");
            let betas: Vec<_> =
                requests.iter().filter_map(|requests| requests.header("anthropic-beta")).collect();
            assert!(betas.iter().all(|betas| !betas.contains("oauth")), "{name}: {betas:?}");
            let bearers: Vec<_> =
                requests.iter().map(|requests| requests.header("authorization").unwrap()).collect();
            assert_eq!(
                bearers,
                expected.iter().map(|key| format!("Bearer {key}")).collect::<Vec<_>>(),
                "{name}"
            );
            match error {
                None => assert!(last.is_ok(), "{name}: {last:?}"),
                Some(part) => assert!(
                    last.as_ref().is_err_and(|error| error.message.contains(part)),
                    "{name}: {last:?}"
                ),
            }
        }
    }
}
