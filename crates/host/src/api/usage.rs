//! What turns have cost, and who did what.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use whimbrel::wire::message::ModelUsage;

use super::Api;
use super::forms::{Parameters, check_limit, ok};
use crate::error::{ApiError, ApiResult};
use crate::store::sessions::dollars;
use crate::store::turns::{FinishedTurn, UsageKey, UsageLine};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageParameters {
    from: Option<i64>,
    to: Option<i64>,
    by: Option<String>,
    format: Option<String>,
}

pub(crate) async fn usage(
    State(api): State<Api>,
    headers: HeaderMap,
    Parameters(parameters): Parameters<UsageParameters>,
) -> ApiResult<Response> {
    let key = match parameters.by.as_deref().unwrap_or("day") {
        "day" => UsageKey::Day,
        "model" => UsageKey::Model,
        "session" => UsageKey::Session,
        "group" => UsageKey::Group,
        _ => return Err(ApiError::bad_request("`by` must be day, model, session or group")),
    };
    let lines = sum_usage(&api, parameters.from, parameters.to, key).await?;
    let accepts_csv = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accepted| accepted.contains("text/csv"));
    match parameters.format.as_deref() {
        Some("csv") => Ok(csv_response(&lines)),
        None if accepts_csv => Ok(csv_response(&lines)),
        None | Some("json") => {
            let rows: Json = lines.iter().map(UsageLine::to_json).collect();
            Ok(ok(&json!({"rows": rows})))
        }
        Some(_) => Err(ApiError::bad_request("`format` must be json or csv")),
    }
}

/// Sums turns by a key. A turn counts once for each model that it used.
pub(crate) async fn sum_usage(
    api: &Api,
    from: Option<i64>,
    to: Option<i64>,
    key: UsageKey,
) -> ApiResult<Vec<UsageLine>> {
    let turns = api.host.store.finished_turns(from, to).await?;
    let mut lines: BTreeMap<String, UsageLine> = BTreeMap::new();
    for turn in &turns {
        add_turn(&mut lines, turn, key);
    }
    Ok(lines.into_values().collect())
}

fn add_turn(lines: &mut BTreeMap<String, UsageLine>, turn: &FinishedTurn, key: UsageKey) {
    let usage: BTreeMap<String, ModelUsage> =
        turn.usage.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if key == UsageKey::Model {
        for (model, usage) in &usage {
            let line = line_of(lines, model);
            line.turns += 1;
            line.cost_usd += usage.cost_usd;
            add_tokens(line, usage);
        }
        return;
    }
    let name = match key {
        UsageKey::Day => day_of(turn.ended_at),
        UsageKey::Session => turn.session.clone(),
        UsageKey::Model | UsageKey::Group => String::new(),
    };
    let line = line_of(lines, &name);
    line.turns += 1;
    line.cost_usd += dollars(turn.cost_micros);
    usage.values().for_each(|usage| add_tokens(line, usage));
}

fn line_of<'a>(lines: &'a mut BTreeMap<String, UsageLine>, name: &str) -> &'a mut UsageLine {
    lines.entry(name.to_owned()).or_insert_with(|| UsageLine { key: name.to_owned(), ..UsageLine::default() })
}

fn add_tokens(line: &mut UsageLine, usage: &ModelUsage) {
    line.input += usage.input_tokens;
    line.output += usage.output_tokens;
    line.cache_read += usage.cache_read_input_tokens;
    line.cache_write += usage.cache_creation_input_tokens;
}

/// The day of a time, in the zone of the server.
fn day_of(ms: i64) -> String {
    let zone = jiff::tz::TimeZone::system();
    jiff::Timestamp::from_millisecond(ms)
        .map_or_else(|_| String::new(), |time| time.to_zoned(zone).strftime("%Y-%m-%d").to_string())
}

fn csv_response(lines: &[UsageLine]) -> Response {
    let mut text = String::from("key,turns,input,output,cache_read,cache_write,cost_usd\r\n");
    for line in lines {
        let UsageLine { key, turns, input, output, cache_read, cache_write, cost_usd } = line;
        let key = key.replace('"', "\"\"");
        text.push_str(&format!(
            "\"{key}\",{turns},{input},{output},{cache_read},{cache_write},{cost_usd}\r\n"
        ));
    }
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"usage.csv\""),
    ];
    (headers, text).into_response()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditParameters {
    since: Option<i64>,
    limit: Option<i64>,
    cursor: Option<String>,
}

pub(crate) async fn audit(
    State(api): State<Api>,
    Parameters(parameters): Parameters<AuditParameters>,
) -> ApiResult<Response> {
    let limit = check_limit(parameters.limit)?;
    let after = parameters.cursor.unwrap_or_default();
    let entries = api.host.store.audit(parameters.since.unwrap_or(0), &after, limit).await?;
    let is_full = i64::try_from(entries.len()).is_ok_and(|count| count == limit);
    let next = if is_full { entries.last().map(|entry| entry["id"].clone()) } else { None };
    Ok(ok(&json!({"audit": entries, "next": next})))
}
