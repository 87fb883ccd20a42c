//! Which functions does a rule find otherwise than on the server?
//!
//! Those of `repair`, and those whose answers differ: `size` counts characters there and bytes in the
//! evaluator, `matches` and `find` speak RE2, `int` and `duration` take nothing that Go would not.

use std::sync::Arc;

use kube::core::cel::cel::{
    Context, ExecutionError, FunctionContext, ResolveResult, Value,
    extractors::{Arguments, This},
    functions as builtin,
    objects::{KeyRef, Opaque, OptionalValue},
};
use nodemolt_fit::go_duration;

use super::{repair, tick};
use crate::admission::pattern;

/// A function as the evaluator calls it: with its arguments not yet evaluated.
type Raw = Box<dyn Fn(&mut FunctionContext) -> ResolveResult + Send + Sync>;

/// An error of one item, held until the loop has seen the others.
#[derive(Debug, PartialEq, Eq)]
struct Held(String);

impl Opaque for Held {
    fn runtime_type_name(&self) -> &'static str {
        "held error"
    }
}

/// What `type(x)` answers; `int` and the others are the names of such values.
#[derive(Debug, PartialEq, Eq)]
struct TypeName(&'static str);

impl Opaque for TypeName {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

const TYPES: [&str; 9] =
    ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type"];

fn type_of(it: &Value) -> ResolveResult {
    let name = match it {
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Function(..) | Value::Opaque(_) => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::Opaque(Arc::new(TypeName(name))))
}

pub(super) fn register(context: &mut Context<'static>) {
    for (heavy, name) in [false, true].into_iter().zip(repair::AND) {
        let function: Raw = Box::new(move |it| decide(it, heavy, false));
        context.add_function(name, function);
    }
    for (heavy, name) in [false, true].into_iter().zip(repair::OR) {
        let function: Raw = Box::new(move |it| decide(it, heavy, true));
        context.add_function(name, function);
    }
    for (heavy, name) in [false, true].into_iter().zip(repair::STEP) {
        let function: Raw = Box::new(move |it| step(it, heavy));
        context.add_function(name, function);
    }
    for (name, decisive) in [(repair::BOTH, false), (repair::ANY, true)] {
        let function: Raw = Box::new(move |it| either_side(it, decisive));
        context.add_function(name, function);
    }
    context.add_function(repair::SETTLED, settled);
    context.add_function(repair::OPTIONAL_MEMBER, |of: Value, key: Value| chosen(&of, &key));
    context.add_function(repair::OPTIONAL_ITEM, |of: Value, key: Value| chosen(&of, &key));
    let map: Raw = Box::new(|it| optional_map(it, false));
    context.add_function("optMap", map);
    let flat_map: Raw = Box::new(|it| optional_map(it, true));
    context.add_function("optFlatMap", flat_map);

    let size_of: Raw = Box::new(|it| size(&subject(it)?));
    context.add_function("size", size_of);
    context.add_function("matches", matches);
    context.add_function("find", find);
    context.add_function("findAll", find_all);
    let int_of: Raw = Box::new(|it| int(&subject(it)?));
    context.add_function("int", int_of);
    context.add_function("bool", bool_of);
    context.add_function("type", |it: Value| type_of(&it));
    for name in TYPES {
        context.add_variable_from_value(name, Value::Opaque(Arc::new(TypeName(name))));
    }
    context.add_function("dyn", |it: Value| -> ResolveResult { Ok(it) });
    context.add_function("duration", duration);
}

fn argument<'a>(
    it: &FunctionContext<'_, 'a>,
    at: usize,
) -> Result<&'a super::Expression, ExecutionError> {
    it.args.get(at).ok_or_else(|| ExecutionError::invalid_argument_count(at + 1, it.args.len()))
}

/// One turn of `all` (where false decides) or of `exists` (where true does).
fn decide(it: &mut FunctionContext, heavy: bool, decisive: bool) -> ResolveResult {
    tick(heavy, 0)?;
    let so_far = it.ptx.resolve(argument(it, 0)?)?;
    match it.ptx.resolve(argument(it, 1)?) {
        Ok(Value::Bool(told)) if told == decisive => Ok(Value::Bool(decisive)),
        Ok(Value::Bool(_)) => Ok(so_far),
        // The first error is the one that is told.
        Ok(_) | Err(_) if matches!(so_far, Value::Opaque(_)) => Ok(so_far),
        Ok(_) => Ok(Value::Opaque(Arc::new(Held(String::new())))),
        Err(error) => {
            // A budget that is spent does not come back.
            tick(false, 0)?;
            let text = match super::failure(&error) {
                super::Failure::Error(text) => text,
                super::Failure::NoOverload | super::Failure::OutOfBudget => String::new(),
            };
            Ok(Value::Opaque(Arc::new(Held(text))))
        }
    }
}

/// `&&` (where false decides) and `||` (where true does): one side may fail if the other decides.
fn either_side(it: &mut FunctionContext, decisive: bool) -> ResolveResult {
    let left = it.ptx.resolve(argument(it, 0)?);
    if left == Ok(Value::Bool(decisive)) {
        return left;
    }
    match (left, it.ptx.resolve(argument(it, 1)?)) {
        (_, Ok(Value::Bool(told))) if told == decisive => Ok(Value::Bool(decisive)),
        (Ok(Value::Bool(_)), Ok(Value::Bool(told))) => Ok(Value::Bool(told)),
        (Err(error), _) | (Ok(Value::Bool(_)), Err(error)) => Err(error),
        (Ok(_), _) => Err(ExecutionError::NoSuchOverload),
    }
}

/// What a function is asked about: before the dot, or the only argument. The evaluator's own way to
/// this forgets why the argument has no value.
fn subject(it: &FunctionContext) -> ResolveResult {
    match &it.this {
        Some(this) => Ok(this.clone()),
        None => it.ptx.resolve(argument(it, 0)?),
    }
}

fn step(it: &mut FunctionContext, heavy: bool) -> ResolveResult {
    let told = it.ptx.resolve(argument(it, 0)?)?;
    let held = match &told {
        Value::List(items) => u64::try_from(items.len()).unwrap_or(u64::MAX),
        Value::Map(map) => u64::try_from(map.map.len()).unwrap_or(u64::MAX),
        Value::Function(..)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Bool(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Opaque(_)
        | Value::Null => 0,
    };
    tick(heavy, held)?;
    Ok(told)
}

/// The end of a loop: an error that no item outweighed is one after all.
fn settled(told: Value) -> ResolveResult {
    if let Value::Opaque(it) = &told
        && let Some(Held(text)) = it.downcast_ref::<Held>()
    {
        return Err(match text.as_str() {
            "" => ExecutionError::NoSuchOverload,
            text => ExecutionError::function_error("loop", text),
        });
    }
    Ok(told)
}

fn none() -> Value {
    Value::Opaque(Arc::new(OptionalValue::none()))
}

fn some(value: Value) -> Value {
    Value::Opaque(Arc::new(OptionalValue::of(value)))
}

/// `of.?key` and `of[?key]`: an optional, whatever happens.
fn chosen(of: &Value, key: &Value) -> ResolveResult {
    if let Ok(optional) = <&OptionalValue>::try_from(of) {
        return match optional.value() {
            Some(inner) => chosen(inner, key),
            None => Ok(none()),
        };
    }
    let found = match (of, key) {
        (Value::Map(map), key) => KeyRef::try_from(key).ok().and_then(|it| map.get(&it)).cloned(),
        (Value::List(items), Value::Int(at)) => {
            usize::try_from(*at).ok().and_then(|it| items.get(it)).cloned()
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(found.map_or_else(none, some))
}

/// `optional.optMap(name, expression)`.
fn optional_map(it: &mut FunctionContext, flat: bool) -> ResolveResult {
    let this = it.this.clone().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let optional: &OptionalValue = (&this).try_into()?;
    let Some(value) = optional.value() else { return Ok(none()) };
    let kube::core::cel::cel::common::ast::Expr::Ident(name) = &argument(it, 0)?.expr else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut context = it.ptx.new_inner_scope();
    context.add_variable_from_value(name.clone(), value.clone());
    let told = context.resolve(argument(it, 1)?)?;
    Ok(if flat { told } else { some(told) })
}

fn size(this: &Value) -> ResolveResult {
    let size = match this {
        Value::String(text) => text.chars().count(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Function(..)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Opaque(_)
        | Value::Null => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn regex(text: &str) -> Result<Arc<regex::Regex>, ExecutionError> {
    pattern::remembered(text).map_err(|error| ExecutionError::function_error("matches", error))
}

#[expect(clippy::needless_pass_by_value, reason = "the evaluator passes values")]
fn matches(This(this): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    Ok(Value::Bool(regex(&pattern)?.is_match(&this)))
}

#[expect(clippy::needless_pass_by_value, reason = "the evaluator passes values")]
fn find(This(this): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    let found = regex(&pattern)?.find(&this).map_or("", |it| it.as_str()).to_owned();
    Ok(Value::String(Arc::new(found)))
}

fn find_all(This(this): This<Arc<String>>, Arguments(args): Arguments) -> ResolveResult {
    let (pattern, most) = match args.as_slice() {
        [Value::String(pattern)] => (pattern, usize::MAX),
        [Value::String(pattern), Value::Int(most)] => {
            (pattern, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let regex = regex(pattern)?;
    let found =
        regex.find_iter(&this).take(most).map(|it| Value::String(Arc::new(it.as_str().to_owned())));
    Ok(Value::List(Arc::new(found.collect())))
}

fn no_conversion(wanted: &str) -> ExecutionError {
    let text = format!("type conversion error from 'string' to '{wanted}'");
    ExecutionError::function_error("conversion", text)
}

fn int(this: &Value) -> ResolveResult {
    let overflow = || ExecutionError::function_error("int", "integer overflow");
    let whole = match this {
        Value::Int(whole) => *whole,
        Value::UInt(whole) => i64::try_from(*whole).map_err(|_| overflow())?,
        Value::Float(float) => {
            if float.is_nan() || float.abs() >= 9_223_372_036_854_775_807.0 {
                return Err(overflow());
            }
            #[expect(clippy::cast_possible_truncation, reason = "its size was just looked at")]
            let whole = *float as i64;
            whole
        }
        Value::String(text) => text.parse::<i64>().map_err(|_| no_conversion("int"))?,
        Value::Timestamp(at) => at.timestamp(),
        Value::List(_)
        | Value::Map(_)
        | Value::Function(..)
        | Value::Bytes(_)
        | Value::Bool(_)
        | Value::Duration(_)
        | Value::Opaque(_)
        | Value::Null => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::Int(whole))
}

fn bool_of(it: Value) -> ResolveResult {
    match &it {
        Value::Bool(_) => Ok(it),
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(no_conversion("bool")),
        },
        Value::List(_)
        | Value::Map(_)
        | Value::Function(..)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Bytes(_)
        | Value::Opaque(_)
        | Value::Timestamp(_)
        | Value::Null
        | Value::Duration(_) => Err(ExecutionError::NoSuchOverload),
    }
}

fn duration(this: Value) -> ResolveResult {
    match this {
        Value::Duration(_) => Ok(this),
        Value::String(text) => {
            if go_duration(&text).is_none() {
                return Err(no_conversion("google.protobuf.Duration"));
            }
            builtin::duration(text)
        }
        Value::List(_)
        | Value::Map(_)
        | Value::Function(..)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Bytes(_)
        | Value::Opaque(_)
        | Value::Timestamp(_)
        | Value::Null
        | Value::Bool(_) => Err(ExecutionError::NoSuchOverload),
    }
}
