//! What may be written about a rollout?
//!
//! Shapes of single values, checked by the API server.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::shape::{DATE, int_or_string, rule};

pub(super) fn concurrency(_: &mut SchemaGenerator) -> Schema {
    let message = "is neither a number nor a share: write a number such as 3, a percentage from 0% to \
                   100%, or `Parallel`";
    int_or_string("^([0-9]{1,9}|(100|[0-9]{1,2})%|Parallel)$", message)
}

pub(super) fn time_zone(_: &mut SchemaGenerator) -> Schema {
    let message = "is not the name of a time zone: write one of the IANA database, for example \
                   Europe/Berlin, America/New_York or UTC";
    let shape = "self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$')";
    json_schema!({
        "type": "string",
        "maxLength": 64,
        "default": "UTC",
        "x-kubernetes-validations": [rule(shape, message)],
    })
}

pub(super) fn time_of_day(_: &mut SchemaGenerator) -> Schema {
    let message =
        "is not a time of the day: write hours and minutes in quotes, for example \"22:00\"";
    let shape = "self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')";
    json_schema!({
        "type": "string", "maxLength": 5, "x-kubernetes-validations": [rule(shape, message)],
    })
}

pub(super) fn time_of_day_or_midnight(_: &mut SchemaGenerator) -> Schema {
    let message = "is not a time of the day: write hours and minutes in quotes, for example \
                   \"05:30\", or \"24:00\" for the day's end";
    let shape = "self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')";
    json_schema!({
        "type": "string", "maxLength": 5, "x-kubernetes-validations": [rule(shape, message)],
    })
}

pub(super) fn cron(_: &mut SchemaGenerator) -> Schema {
    let message = "is not a schedule: write the five fields of cron, for example `0 22 * * 1-5`, or \
                   @yearly, @monthly, @weekly, @daily or @hourly";
    let shape = "self.matches('^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|\
                 [0-9A-Za-z*/,?#-]+( +[0-9A-Za-z*/,?#-]+){4})$')";
    json_schema!({
        "type": "string", "maxLength": 128, "x-kubernetes-validations": [rule(shape, message)],
    })
}

pub(super) fn date(_: &mut SchemaGenerator) -> Schema {
    let message = "is not a date: write it as 2026-12-20";
    let shape = format!("self.matches('^{DATE}$')");
    json_schema!({
        "type": "string", "maxLength": 10, "x-kubernetes-validations": [rule(&shape, message)],
    })
}
