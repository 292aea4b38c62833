use std::pin::Pin;

use serde_json::{Map, Value, json};
use whimbrel_wire::RawJson;

use super::*;
use crate::tools::{AnyTool, Call, Done, Example, Output, Touches, Trouble, all};

/// A tool of a server, with a description of this many bytes.
struct Guest {
    name: String,
    bytes: usize,
}

impl AnyTool for Guest {
    fn name(&self) -> &str {
        &self.name
    }
    fn aliases(&self) -> &[&str] {
        &[]
    }
    fn spec(&self) -> ToolSpec {
        let (name, description) = (self.name.clone(), "x".repeat(self.bytes));
        ToolSpec { name, description, input_schema: RawJson::of(&Map::new()).unwrap() }
    }
    fn touches(&self, _: &Value) -> Result<Touches, Trouble> {
        Ok(Touches::Nothing)
    }
    fn run<'a>(&'a self, _: Value, _: Call) -> Pin<Box<dyn Future<Output = Output> + Send + 'a>> {
        Box::pin(async { Ok(Done::text("", json!({}))) })
    }
    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }
    fn server(&self) -> Option<&str> {
        Some("guests")
    }
}

fn with_guests(bytes: &[usize]) -> Toolbox {
    let guests = bytes.iter().enumerate().map(|(nth, bytes)| {
        Arc::new(Guest { name: format!("mcp__guests__{nth}"), bytes: *bytes }) as Arc<dyn AnyTool>
    });
    Toolbox::of(all().into_iter().chain(guests).collect())
}

fn names(on_demand: &OnDemand, toolbox: &Toolbox) -> Vec<String> {
    on_demand.shown(toolbox).iter().map(|spec| spec.name.clone()).collect()
}

#[test]
fn what_is_on_demand_is_not_shown_until_it_is_loaded() {
    let (toolbox, on_demand) = (with_guests(&[]), OnDemand::default());
    let before = names(&on_demand, &toolbox);
    assert!(
        before.contains(&"Read".to_owned()) && !before.contains(&"NotebookEdit".to_owned()),
        "{before:?}"
    );
    assert!(on_demand.waits(&toolbox, "NotebookEdit") && !on_demand.waits(&toolbox, "Read"));
    on_demand.load(["NotebookEdit".to_owned(), "Nobody".to_owned(), "NotebookEdit".to_owned()]);
    let after = names(&on_demand, &toolbox);
    assert_eq!(after[..before.len()], before, "the beginning of a request must stay the same");
    assert_eq!(after[before.len()..], ["NotebookEdit"]);
    assert!(!on_demand.waits(&toolbox, "NotebookEdit"));
}

#[test]
fn tools_of_servers_are_shown_as_long_as_there_is_room_for_all_of_them() {
    let rows = [
        ("a few", [100, 200], 1000, true),
        ("too many", [100, 2000], 1000, false),
        ("none is wanted at once", [1, 1], 0, false),
    ];
    for (name, bytes, room, shown) in rows {
        let toolbox = with_guests(&bytes);
        let on_demand = OnDemand::with_room(room);
        let found = names(&on_demand, &toolbox);
        let guests = found.iter().filter(|name| name.starts_with("mcp__")).count();
        assert_eq!(guests, if shown { 2 } else { 0 }, "{name}");
        assert!(found.contains(&"Read".to_owned()), "{name}");
    }
}

#[test]
fn without_a_search_everything_is_shown() {
    let toolbox = with_guests(&[90_000]).without(&[TOOL_SEARCH]);
    assert_eq!(names(&OnDemand::default(), &toolbox), toolbox.names());
}

#[test]
fn where_nothing_is_on_demand_there_is_nothing_to_search() {
    let few =
        Toolbox::of(all().into_iter().filter(|tool| ["Read", TOOL_SEARCH].contains(&tool.name())).collect());
    assert_eq!(names(&OnDemand::default(), &few), ["Read"]);
}

#[test]
fn names_are_told_once_and_new_ones_when_they_come() {
    let on_demand = OnDemand::with_room(0);
    let first = on_demand.news(&with_guests(&[])).unwrap();
    assert!(first.contains("NotebookEdit") && first.contains("ToolSearch"), "{first}");
    assert_eq!(on_demand.news(&with_guests(&[])), None);
    let second = on_demand.news(&with_guests(&[1])).unwrap();
    assert!(second.contains("mcp__guests__0") && !second.contains("NotebookEdit"), "{second}");
    on_demand.forget_told();
    assert!(on_demand.news(&with_guests(&[1])).is_some());
    let many = OnDemand::with_room(0).news(&with_guests(&[1; 400])).unwrap();
    assert!(many.len() < 6_000 && many.contains(" more, which ToolSearch finds"), "{}", many.len());
}

#[test]
fn the_variable_says_how_much_room_there_is() {
    let rows = [
        (None, Ok(Some(USUAL_ROOM))),
        (Some("true"), Ok(Some(0))),
        (Some("False"), Ok(None)),
        (Some("auto"), Ok(Some(80_000))),
        (Some("auto:25"), Ok(Some(200_000))),
        (Some("auto:0"), Ok(Some(0))),
    ];
    let said = |value: Option<&str>| -> BTreeMap<String, String> {
        value.map(|value| (VARIABLE.to_owned(), value.to_owned())).into_iter().collect()
    };
    for (value, expected) in rows {
        assert_eq!(room(&said(value), Some(200_000)), expected, "{value:?}");
    }
    for wrong in ["auto:101", "auto:x", "perhaps"] {
        assert!(room(&said(Some(wrong)), None).unwrap_err().contains(VARIABLE), "{wrong}");
    }
}
