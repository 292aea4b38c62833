//! The Messages API with a key that is fetched: a key that the server refuses is fetched anew, once.

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::Anthropic;
use crate::correct::Part;
use crate::fault::{Fault, FaultKind};
use crate::key::KeySource;
use crate::model::{Delta, Model};
use crate::request::Request;

/// A server, and who has its key.
pub(crate) struct Keyed {
    server: Arc<Anthropic>,
    source: Arc<dyn KeySource>,
}

impl Keyed {
    pub(crate) fn new(server: Arc<Anthropic>, source: Arc<dyn KeySource>) -> Self {
        Self { server, source }
    }
}

impl Model for Keyed {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        let (server, source) = (Arc::clone(&self.server), Arc::clone(&self.source));
        stream::once(async move {
            let key = source.key(None).await?;
            match server.open(Arc::clone(&request), Some(&key)).await {
                Err(fault) if fault.kind == FaultKind::Authentication => {
                    let fresh = source.key(Some(key.clone())).await?;
                    // The same again would be refused again.
                    if fresh == key { Err(fault) } else { server.open(request, Some(&fresh)).await }
                }
                opened => opened,
            }
        })
        .try_flatten()
        .boxed()
    }

    fn forgo(&self, model: &str, part: &Part) {
        self.server.forgo(model, part);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::BoxFuture;
    use whimbrel_wire::{Block, Role};

    use super::*;
    use crate::history::History;
    use crate::http::Door;
    use crate::loopback::{Act, Server, answer};
    use crate::request::Preamble;

    /// Gives these keys in turn, the last one for ever, and notes which were refused.
    struct Keys {
        keys: Mutex<Vec<&'static str>>,
        refused: Mutex<Vec<Option<String>>>,
    }

    impl KeySource for Keys {
        fn key(&self, refused: Option<String>) -> BoxFuture<'_, Result<String, Fault>> {
            let mut keys = self.keys.lock().unwrap();
            if refused.is_some() && keys.len() > 1 {
                keys.remove(0);
            }
            self.refused.lock().unwrap().push(refused);
            let key = keys[0].to_owned();
            Box::pin(std::future::ready(Ok(key)))
        }
    }

    fn refusal() -> Vec<Act> {
        answer(401, "", r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#)
    }

    fn reply() -> Vec<Act> {
        let body = r#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;
        answer(200, "content-type: application/json\r\n", body)
    }

    #[tokio::test]
    async fn a_key_that_is_refused_is_fetched_anew_once() {
        let rows = [
            ("good at once", vec![reply()], vec!["a"], vec!["a"], None),
            ("good the second time", vec![refusal(), reply()], vec!["a", "b"], vec!["a", "b"], None),
            ("the same again", vec![refusal()], vec!["a"], vec!["a"], Some("apiKeyHelper")),
            (
                "never good",
                vec![refusal(), refusal()],
                vec!["a", "b", "c"],
                vec!["a", "b"],
                Some("apiKeyHelper"),
            ),
        ];
        for (name, answers, keys, expected, fault) in rows {
            let server = Server::start(answers).await;
            let source = Arc::new(Keys { keys: Mutex::new(keys), refused: Mutex::default() });
            let api = Anthropic::from_env(
                |name| (name == "ANTHROPIC_BASE_URL").then(|| server.url.clone()),
                Door::from_env(|_| None),
            );
            let model = Keyed::new(Arc::new(api), source);
            let mut history = History::new();
            history.push(Role::User, &Block::text("hi"));
            let request = Request::new("m", Arc::new(Preamble::new(vec![], vec![])), history.ask());
            let last = model.ask(Arc::new(request)).collect::<Vec<_>>().await.pop().unwrap();
            let seen = server.seen();
            let sent: Vec<_> = seen.iter().map(|seen| seen.header("x-api-key").unwrap()).collect();
            assert_eq!(sent, expected, "{name}");
            let bearers: Vec<_> = seen.iter().map(|seen| seen.header("authorization").unwrap()).collect();
            assert_eq!(
                bearers,
                expected.iter().map(|key| format!("Bearer {key}")).collect::<Vec<_>>(),
                "{name}"
            );
            match fault {
                None => assert!(last.is_ok(), "{name}: {last:?}"),
                Some(part) => assert!(
                    last.as_ref().is_err_and(|fault| fault.message.contains(part)),
                    "{name}: {last:?}"
                ),
            }
        }
    }
}
