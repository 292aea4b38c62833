use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Tagged {
    /// Adds
    /// two numbers.
    Add {
        a: i64,
        b: i64,
    },
    Neg {
        a: i64,
        exact: Option<bool>,
    },
    Reset,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum External {
    Add { a: i64 },
    Name(String),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Id { id: u32 },
    Name { name: String, id: String },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Level {
    Low,
    High,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Unit;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Empty {}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Page {
    /// The page.
    page: u32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Flattened {
    dry: bool,
    #[serde(flatten)]
    op: Tagged,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct OddName {
    #[serde(rename = "page number")]
    page: u32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Tree {
    Leaf { text: String },
    Node { children: Vec<Tree> },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Nested(Vec<Nested>);

fn schema<I: JsonSchema>() -> Value {
    InputFormat::of::<I>().schema.decode().unwrap()
}

#[track_caller]
fn parse<I: JsonSchema + DeserializeOwned>(input: Value) -> Result<I, String> {
    InputFormat::of::<I>().parse(input)
}

#[test]
fn input_that_is_null_is_an_empty_object() {
    let none = json!({"type": "object", "properties": {}});
    assert_eq!((schema::<()>(), schema::<Unit>()), (none.clone(), none));
    for input in [json!({}), Value::Null] {
        assert_eq!(parse::<()>(input.clone()), Ok(()));
        assert_eq!(parse::<Unit>(input.clone()), Ok(Unit));
        assert_eq!(parse::<Empty>(input.clone()), Ok(Empty {}));
        assert_eq!(parse::<Option<Page>>(input), Ok(None));
    }
    assert_eq!(parse::<Option<Page>>(json!({"page": 1})), Ok(Some(Page { page: 1 })));
    assert_eq!(schema::<Option<Page>>()["properties"]["page"]["description"], "The page.");
}

#[test]
fn tagged_variants_become_one_object() {
    let expected = json!({
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": ["add", "neg", "reset"]},
            "a": {"type": "integer", "format": "int64"},
            "b": {"type": "integer", "format": "int64"},
            "exact": {"type": ["boolean", "null"]},
        },
        "required": ["op"],
    });
    assert_eq!(schema::<Tagged>(), expected);
    let description = InputFormat::of::<Tagged>().describe("Computes".into());
    let expected = "Computes\n\nThe input has one of these forms (`?` marks an optional field):\n\
        - `op`: \"add\", `a`, `b`. Adds two numbers.\n- `op`: \"neg\", `a`, `exact`?\n- `op`: \"reset\"";
    let order = |text: &str| {
        let mut lines: Vec<Vec<String>> = text
            .lines()
            .map(|line| {
                let mut words: Vec<String> =
                    line.trim_start_matches("- ").split([',', ' ']).map(str::to_owned).collect();
                words.sort();
                words
            })
            .collect();
        lines.retain(|line| !line.is_empty());
        lines
    };
    assert_eq!(order(&description.replace('.', "")), order(&expected.replace('.', "")), "{description}");
    assert_eq!(parse(json!({"op": "add", "a": 1, "b": 2})), Ok(Tagged::Add { a: 1, b: 2 }));
    assert_eq!(parse(json!({"op": "reset"})), Ok(Tagged::Reset));
    assert!(parse::<Tagged>(json!({"op": "add", "a": 1})).unwrap_err().contains("missing field `b`"));
}

#[test]
fn other_variants_become_one_object() {
    let external = schema::<External>();
    assert_eq!(external.get("required"), None, "{external}");
    assert_eq!(external["properties"]["Name"], json!({"type": "string"}));
    assert_eq!(parse(json!({"Name": "x"})), Ok(External::Name("x".into())));
    let untagged = schema::<Untagged>();
    assert_eq!(untagged["required"], json!(["id"]));
    assert_eq!(untagged["properties"]["id"]["anyOf"].as_array().unwrap().len(), 2, "{untagged}");
    assert_eq!(parse(json!({"id": 7})), Ok(Untagged::Id { id: 7 }));
    let flattened = schema::<Flattened>();
    assert_eq!(flattened["required"], json!(["dry", "op"]), "{flattened}");
    assert_eq!(parse(json!({"dry": true, "op": "reset"})), Ok(Flattened { dry: true, op: Tagged::Reset }));
}

#[test]
fn input_that_is_no_object_is_wrapped() {
    let expected =
        json!({"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]});
    assert_eq!(schema::<String>(), expected);
    assert_eq!(parse(json!({"value": "x"})), Ok("x".to_owned()));
    assert_eq!(parse(json!({"value": [1, 2]})), Ok(vec![1, 2]));
    assert_eq!(parse(json!({"value": "High"})), Ok(Level::High));
    assert_eq!(parse::<Option<u8>>(json!({})), Ok(None));
    assert_eq!(parse(json!({"value": {"page number": 3}})), Ok(OddName { page: 3 }));
    assert_eq!(schema::<OddName>()["properties"]["value"]["required"], json!(["page number"]));
    let error = parse::<Vec<u8>>(json!({"value": [1, "x"]})).unwrap_err();
    assert!(error.starts_with("`value[1]`: invalid type"), "{error}");
}

#[test]
fn any_json_is_the_object_itself() {
    assert_eq!(schema::<Value>(), json!({"type": "object", "properties": {}}));
    assert_eq!(parse::<Value>(json!({"a": 1})), Ok(json!({"a": 1})));
    assert_eq!(parse::<Value>(json!({})), Ok(json!({})));
}

#[test]
fn recursive_inputs_refer_to_themselves() {
    let valid = |schema: &Value, input: &Value| {
        assert!(COMBINATORS.iter().chain(["$ref"].iter()).all(|key| schema.get(key).is_none()), "{schema}");
        let text = schema.to_string();
        for reference in text.split("\"$ref\":\"").skip(1) {
            let name = reference.split('"').next().unwrap().strip_prefix("#/$defs/").unwrap();
            assert!(schema["$defs"].get(name).is_some(), "{name} of {input}: {schema}");
        }
    };
    let tree = json!({"kind": "Node", "children": [{"kind": "Leaf", "text": "x"}]});
    valid(&schema::<Tree>(), &tree);
    assert_eq!(parse(tree), Ok(Tree::Node { children: vec![Tree::Leaf { text: "x".into() }] }));
    let list = json!({"value": [[]]});
    valid(&schema::<Nested>(), &list);
    assert_eq!(parse(list), Ok(Nested(vec![Nested(vec![])])));
}

#[test]
fn error_names_the_field() {
    assert_eq!(
        parse::<Page>(json!({"page": "x"})).unwrap_err(),
        "`page`: invalid type: string \"x\", expected u32"
    );
    assert!(parse::<Page>(json!({})).unwrap_err().contains("missing field `page`"));
}
