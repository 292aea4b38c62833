//! The system prompt as the model gets it.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply};
use whimbrel_wire::options::SystemPrompt;

#[tokio::test]
async fn an_empty_system_prompt_is_none_in_either_dialect() {
    for (model, system) in [("claude-opus-4-5", json!([])), ("openai:m", Value::Null)] {
        let host = Host::with([Reply::text("Yes.")]).change(|options| {
            options.model = Some(model.into());
            options.system_prompt = Some(SystemPrompt::Text(String::new()));
        });
        let mut host = host.start().await.unwrap();
        assert_eq!(host.run("Hello?").await.unwrap().result.as_deref(), Some("Yes."), "{model}");
        let asked = host.asked();
        assert_eq!(asked[0].body["system"], system, "{model}");
        assert!(asked[0].messages().iter().all(|message| message["role"] != "system"), "{model}");
        assert!(!asked[0].tools().is_empty(), "{model}");
    }
}
