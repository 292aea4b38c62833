//! What the model sends as a value of a type, the input of a tool or an answer: its schema in the form that providers
//! accept, and the conversion.
//!
//! Providers accept only an object schema without `oneOf`, `anyOf` and `allOf` at the top. Types that are no object
//! become the field `value` of one. So do types with variants in an answer, because the engine validates it against the
//! schema; in the input of a tool they become one object with all their fields, which models fill in more easily.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use whimbrel_wire::RawJson;

/// Field that holds an input that is no object.
const VALUE_FIELD: &str = "value";

/// Name under which the schema of the input type is kept if it refers to itself.
const SELF_DEFINITION: &str = "Input";

/// Limit on references and combinators below each other.
const MAX_NESTING: usize = 16;

const COMBINATORS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Schema of an input, and how the model's object becomes a value of its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InputFormat {
    pub(super) schema: RawJson,
    encoding: Encoding,
    /// One line per variant, if the type has several.
    forms: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// The object is the input, also where any JSON is one. An empty object may also stand for null.
    Object,
    /// The input is the field `value`.
    Wrapped,
}

/// What becomes of a type with several variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VariantEncoding {
    /// One object with the fields of all variants.
    Folded,
    /// The field `value` of an object.
    Wrapped,
}

impl InputFormat {
    /// Fits the schema of a type that is the input of a tool.
    pub(super) fn of<I: JsonSchema>() -> Self {
        Self::of_type::<I>(VariantEncoding::Folded)
    }

    /// Fits the schema of a type that is an answer. An answer that matches it is a value of the type.
    pub(crate) fn of_answer<T: JsonSchema>() -> Self {
        Self::of_type::<T>(VariantEncoding::Wrapped)
    }

    fn of_type<I: JsonSchema>(variants: VariantEncoding) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        Self::fit(settings.into_generator().into_root_schema_for::<I>().to_value(), variants)
    }

    fn fit(schema: Value, variants: VariantEncoding) -> Self {
        let mut root = match schema {
            Value::Object(root) => root,
            _ => Map::new(),
        };
        root.remove("title");
        let is_any = root.keys().all(|key| key == "description");
        if is_any || is_type(&root, "null") {
            return Self::new(&json!({"type": "object", "properties": {}}), Encoding::Object, Vec::new());
        }
        // An input that is null comes as an empty object; an answer has to say it.
        let may_be_null =
            variants == VariantEncoding::Wrapped && root.get("type").is_some_and(Value::is_array);
        if !may_be_null && is_plain_object(&root) && field_names(&root).all(is_accepted_name) {
            root.insert("type".into(), "object".into());
            root.entry("properties").or_insert_with(|| Map::new().into());
            return Self::new(&Value::Object(root), Encoding::Object, Vec::new());
        }
        let definitions = name_self_references(&mut root);
        let folded = match variants {
            VariantEncoding::Folded => fold(&Value::Object(root.clone()), &definitions, 0),
            VariantEncoding::Wrapped => None,
        };
        match folded.filter(|folded| folded.fields.iter().all(|field| is_accepted_name(&field.name))) {
            Some(folded) => {
                let forms = folded.forms.clone();
                let description = root.get("description").cloned();
                Self::new(&folded.into_schema(description, definitions), Encoding::Object, forms)
            }
            None => Self::new(&wrap(&root, definitions), Encoding::Wrapped, Vec::new()),
        }
    }

    fn new(schema: &Value, encoding: Encoding, forms: Vec<String>) -> Self {
        let schema =
            RawJson::from_value(schema).unwrap_or_else(|_| unreachable!("a value can be serialized"));
        Self { schema, encoding, forms }
    }

    /// The schema as a value.
    pub(crate) fn schema_value(&self) -> Value {
        self.schema.decode().unwrap_or_else(|_| unreachable!("it was made of a value"))
    }

    /// Adds the forms of the input to the description of its tool.
    pub(super) fn describe(&self, description: String) -> String {
        match self.forms.is_empty() {
            true => description,
            false => format!(
                "{description}\n\nThe input has one of these forms (`?` marks an optional field):\n{}",
                self.forms.join("\n")
            ),
        }
    }

    /// Converts the model's input. The error names the invalid field.
    pub(crate) fn parse<I: DeserializeOwned>(&self, input: Value) -> Result<I, String> {
        let input = match (self.encoding, input) {
            (Encoding::Wrapped, Value::Object(mut fields)) => {
                return parse_value(fields.remove(VALUE_FIELD).unwrap_or_default())
                    .map_err(|(path, reason)| render_error(&join_path(VALUE_FIELD, &path), &reason));
            }
            (_, Value::Null) => Value::Object(Map::new()),
            (_, input) => input,
        };
        let is_empty = input.as_object().is_some_and(Map::is_empty);
        let parsed = parse_value(input);
        match parsed {
            // `()`, unit structs and absent options are null.
            Err((path, reason)) if is_empty => {
                parse_value(Value::Null).map_err(|_| render_error(&path, &reason))
            }
            parsed => parsed.map_err(|(path, reason)| render_error(&path, &reason)),
        }
    }
}

/// Parses a value; the error is the path of the invalid field and the reason.
fn parse_value<I: DeserializeOwned>(value: Value) -> Result<I, (String, String)> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        (if path == "." { String::new() } else { path }, error.into_inner().to_string())
    })
}

fn render_error(path: &str, reason: &str) -> String {
    if path.is_empty() { reason.to_owned() } else { format!("`{path}`: {reason}") }
}

fn join_path(field: &str, below: &str) -> String {
    match below {
        "" => field.to_owned(),
        below if below.starts_with('[') => format!("{field}{below}"),
        below => format!("{field}.{below}"),
    }
}

fn is_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name) && name == "object",
        _ => false,
    }
}

/// Checks for an object schema that providers accept as it is.
fn is_plain_object(schema: &Map<String, Value>) -> bool {
    is_type(schema, "object")
        && !schema.contains_key("$ref")
        && !COMBINATORS.iter().any(|key| schema.contains_key(*key))
}

fn field_names(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flat_map(|fields| fields.keys().map(String::as_str))
}

/// Checks a field name against the pattern of the Messages API, which rejects the whole request otherwise.
fn is_accepted_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Takes the definitions out of a schema. References to the schema as a whole become references to a definition,
/// because another schema takes its place.
fn name_self_references(root: &mut Map<String, Value>) -> Map<String, Value> {
    let definitions = match root.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let (mut all, mut own) = (Value::Object(definitions), Value::Object(std::mem::take(root)));
    let renamed = rename_self_references(&mut all) | rename_self_references(&mut own);
    if renamed {
        all[SELF_DEFINITION] = own.clone();
    }
    if let Value::Object(own) = own {
        *root = own;
    }
    match all {
        Value::Object(definitions) => definitions,
        _ => Map::new(),
    }
}

/// Returns whether there were any.
fn rename_self_references(schema: &mut Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let mut renamed = false;
            for (key, value) in fields.iter_mut() {
                if key == "$ref" && value == "#" {
                    *value = format!("#/$defs/{SELF_DEFINITION}").into();
                    renamed = true;
                } else {
                    renamed |= rename_self_references(value);
                }
            }
            renamed
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |renamed, item| renamed | rename_self_references(item))
        }
        _ => false,
    }
}

/// Puts a schema into the field of an object.
fn wrap(root: &Map<String, Value>, definitions: Map<String, Value>) -> Value {
    let mut schema = json!({"type": "object", "properties": {VALUE_FIELD: root}, "required": [VALUE_FIELD]});
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

/// The fields of a schema and of its variants together.
#[derive(Debug, Clone, Default)]
struct FoldedObject {
    fields: Vec<Field>,
    required: BTreeSet<String>,
    forms: Vec<String>,
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    schema: Value,
}

/// Folds a schema into one object; `None` if a part of it is no object.
fn fold(schema: &Value, definitions: &Map<String, Value>, nesting: usize) -> Option<FoldedObject> {
    let schema = resolve(schema, definitions)?;
    if nesting > MAX_NESTING || (schema.contains_key("type") && !is_type(schema, "object")) {
        return None;
    }
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let is_object = schema.contains_key("type") || schema.contains_key("properties");
    if !is_object && COMBINATORS.iter().all(|key| list(key).is_none()) {
        return None;
    }
    let mut object = FoldedObject::of_fields(schema);
    for part in list("allOf").into_iter().flatten() {
        object.add(fold(part, definitions, nesting + 1)?);
    }
    for variants in [list("oneOf"), list("anyOf")].into_iter().flatten() {
        let is_present = |variant: &&Value| variant.as_object().is_none_or(|fields| !is_type(fields, "null"));
        let variants: Vec<&Value> = variants.iter().filter(is_present).collect();
        let mut folded = Vec::with_capacity(variants.len());
        for variant in &variants {
            folded.push((fold(variant, definitions, nesting + 1)?, resolve(variant, definitions)?));
        }
        object.add(FoldedObject::one_of(folded));
    }
    Some(object)
}

/// Follows references to definitions.
fn resolve<'a>(mut schema: &'a Value, definitions: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    for _ in 0..MAX_NESTING {
        let fields = schema.as_object()?;
        let Some(reference) = fields.get("$ref").and_then(Value::as_str) else { return Some(fields) };
        schema = definitions.get(reference.strip_prefix("#/$defs/")?)?;
    }
    None
}

impl FoldedObject {
    fn of_fields(schema: &Map<String, Value>) -> Self {
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        Self {
            fields: fields
                .map(|(name, schema)| Field { name: name.clone(), schema: schema.clone() })
                .collect(),
            required: required.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
            forms: Vec::new(),
        }
    }

    /// Adds the fields of a schema that holds as well.
    fn add(&mut self, other: Self) {
        for field in other.fields {
            self.add_field(field, "allOf");
        }
        self.required.extend(other.required);
        self.forms.extend(other.forms);
    }

    /// The fields of all variants, of which those are required that all require.
    fn one_of(variants: Vec<(Self, &Map<String, Value>)>) -> Self {
        let mut union = Self::default();
        if let [(_, _), (_, _), ..] = variants.as_slice() {
            union.forms = variants.iter().map(|(variant, schema)| variant.describe_form(schema)).collect();
        }
        for (index, (variant, _)) in variants.into_iter().enumerate() {
            union.required = match index {
                0 => variant.required,
                _ => union.required.intersection(&variant.required).cloned().collect(),
            };
            for field in variant.fields {
                union.add_field(field, "anyOf");
            }
        }
        union
    }

    fn add_field(&mut self, field: Field, combinator: &str) {
        match self.fields.iter_mut().find(|known| known.name == field.name) {
            None => self.fields.push(field),
            Some(known) if known.schema == field.schema => {}
            Some(known) => known.schema = combine(known.schema.take(), field.schema, combinator),
        }
    }

    /// One line about a variant: the fields with their only value, the other fields, its description.
    fn describe_form(&self, schema: &Map<String, Value>) -> String {
        let render = |field: &Field| {
            let mark = if self.required.contains(&field.name) { "" } else { "?" };
            match only_value(&field.schema) {
                Some(value) => format!("`{}`{mark}: {value}", field.name),
                None => format!("`{}`{mark}", field.name),
            }
        };
        let fields: Vec<String> = self.fields.iter().map(render).collect();
        let fields = if fields.is_empty() { "no fields".to_owned() } else { fields.join(", ") };
        match schema.get("description").and_then(Value::as_str) {
            Some(text) => format!("- {fields}. {}", text.split_whitespace().collect::<Vec<_>>().join(" ")),
            None => format!("- {fields}"),
        }
    }

    fn into_schema(self, description: Option<Value>, definitions: Map<String, Value>) -> Value {
        let fields: Map<String, Value> =
            self.fields.into_iter().map(|field| (field.name, field.schema)).collect();
        let mut schema = json!({"type": "object", "properties": fields});
        if !self.required.is_empty() {
            schema["required"] = self.required.into_iter().collect();
        }
        if let Some(description) = description {
            schema["description"] = description;
        }
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions);
        }
        schema
    }
}

fn only_value(schema: &Value) -> Option<&Value> {
    match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(value), _) => Some(value),
        (None, Some(values)) if values.len() == 1 => values.first(),
        _ => None,
    }
}

/// Combines the schemas of a field. Fixed values of variants, such as tags, become one list.
fn combine(known: Value, other: Value, combinator: &str) -> Value {
    let values = |schema: &Value| match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    };
    if combinator == "anyOf"
        && known.get("type") == other.get("type")
        && let (Some(mut all), Some(others)) = (values(&known), values(&other))
    {
        let new: Vec<Value> = others.into_iter().filter(|value| !all.contains(value)).collect();
        all.extend(new);
        let mut schema = json!({"enum": all});
        if let Some(kind) = known.get("type") {
            schema["type"] = kind.clone();
        }
        return schema;
    }
    let is_combined = known.as_object().is_some_and(|fields| fields.len() == 1);
    match known {
        Value::Object(mut fields) if is_combined && fields.get(combinator).is_some_and(Value::is_array) => {
            if let Some(Value::Array(parts)) = fields.get_mut(combinator)
                && !parts.contains(&other)
            {
                parts.push(other);
            }
            Value::Object(fields)
        }
        known => json!({combinator: [known, other]}),
    }
}

#[cfg(test)]
mod tests;
