//! What does an expression say about a value?
//!
//! `expression × self × oldSelf → value`, by kube's evaluator
//!
//! The evaluator is kube's; what it reads and some of what it does is set right here, because a rule
//! that means one thing on the server and another in `validate` is worse than none. `repair` has the
//! corrections of expressions, `functions` those of functions, `convert` reads objects by their schema.
//! docs/decisions/0018 lists what differs.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use kube::core::cel::{
    KubeCelExt as _,
    cel::{Context, ExecutionError, objects::OptionalValue, parser::Parser},
};
use serde_json::Value as Json;

use super::{correlate::Before, schema::Node};

mod convert;
mod functions;
mod repair;

pub(crate) use kube::core::cel::cel::{Value, parser::Expression};

/// The server's limits for one rule and for all rules on an object. Its units are not ours, which are
/// turns of loops and what they copy; both end in seconds.
const RULE_BUDGET: u64 = 1_000_000;
const OBJECT_BUDGET: u64 = 10_000_000;

/// Parses an expression and sets right what the evaluator would get wrong.
pub(crate) fn compile(text: &str) -> Result<Expression, String> {
    let parsed = Parser::default().enable_optional_syntax(true).parse(text);
    let expression = parsed.map_err(|error| error.to_string())?;
    repair::repair(expression)
}

/// Whether a variable occurs.
pub(crate) fn mentions(expression: &Expression, variable: &str) -> bool {
    repair::mentions(expression, variable)
}

/// The members of `self` and `oldSelf` that these expressions look at; `None` for all of them.
pub(crate) fn members<'e>(
    expressions: impl IntoIterator<Item = &'e Expression>,
) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let named = |it: &Expression| {
        ["self", "oldSelf"].into_iter().all(|variable| repair::members(it, variable, &mut found))
    };
    expressions.into_iter().all(named).then_some(found)
}

/// Why an expression has no value.
#[derive(Debug)]
pub(crate) enum Failure {
    NoOverload,
    OutOfBudget,
    /// In Go's words where the server's are known.
    Error(String),
}

thread_local! {
    /// What the loop that runs now may still cost, and what one turn costs that copies `self`.
    static LEFT: Cell<(u64, u64)> = const { Cell::new((u64::MAX, 1)) };
}

/// What all rules on an object may cost.
#[derive(Debug)]
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    pub(crate) fn of_an_object() -> Self {
        Self(Cell::new(OBJECT_BUDGET))
    }
}

/// One part of an object, ready to be asked about. It is read when the first rule of a kind asks.
pub(crate) struct Scope<'b> {
    node: &'b Node,
    value: &'b Json,
    old: Before<'b>,
    resource: bool,
    /// What its rules look at, by the names that rules have for members; `None` for all.
    members: Option<Vec<&'b str>>,
    plain: OnceCell<Context<'static>>,
    /// For rules about a change: lists that are sets or maps stand in one order, so that they compare.
    ordered: OnceCell<Context<'static>>,
    optional: OnceCell<Context<'static>>,
    which: Which,
    weight: u64,
    /// A list where the schema says text with a format: the one wrong type that the shape lets pass.
    unreadable: bool,
    budget: &'b Budget,
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Plain,
    Ordered,
    Optional,
}

static BASE: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    functions::register(&mut context);
    context
});

fn inner() -> Context<'static> {
    let base: &'static Context<'static> = &BASE;
    base.new_inner_scope()
}

impl<'b> Scope<'b> {
    pub(crate) fn new(
        node: &'b Node,
        value: &'b Json,
        old: Before<'b>,
        resource: bool,
        members: Option<Vec<&'b str>>,
        budget: &'b Budget,
    ) -> Self {
        Self {
            node,
            value,
            old,
            resource,
            members,
            plain: OnceCell::new(),
            ordered: OnceCell::new(),
            optional: OnceCell::new(),
            which: Which::Plain,
            weight: convert::weight(value),
            unreadable: node.types == ["string"] && value.is_array(),
            budget,
        }
    }

    fn read(&self, value: &Json, ordered: bool) -> Value {
        match (&self.members, value) {
            (Some(members), Json::Object(all)) => {
                let asked = |name: &str| members.contains(&name);
                convert::read_members(self.node, all, self.resource, ordered, asked)
            }
            (Some(_) | None, _) => convert::read(self.node, value, self.resource, ordered),
        }
    }

    fn context(&self) -> &Context<'static> {
        match (self.which, self.old) {
            (Which::Plain, _) | (Which::Ordered, None) => self.plain.get_or_init(|| {
                let mut context = inner();
                context.add_variable_from_value("self", self.read(self.value, false));
                context
            }),
            (Which::Ordered, Some(old)) => self.ordered.get_or_init(|| {
                let mut context = inner();
                context.add_variable_from_value("self", self.read(self.value, true));
                context.add_variable_from_value("oldSelf", self.read(old, true));
                context
            }),
            (Which::Optional, old) => self.optional.get_or_init(|| {
                let mut context = inner();
                context.add_variable_from_value("self", self.read(self.value, true));
                let old = match old {
                    Some(old) => OptionalValue::of(self.read(old, true)),
                    None => OptionalValue::none(),
                };
                context.add_variable_from_value("oldSelf", Value::Opaque(Arc::new(old)));
                context
            }),
        }
    }

    /// The next rule is of this kind.
    pub(crate) fn turn_to(&mut self, transition: bool, optional_old: bool) {
        self.which = match (transition, optional_old) {
            (false, _) => Which::Plain,
            (true, false) => Which::Ordered,
            (true, true) => Which::Optional,
        };
    }

    pub(crate) fn evaluate(&self, expression: &Expression) -> Result<Value, Failure> {
        if self.unreadable {
            let error = "invalid data, expected string, got []interface {}";
            return Err(Failure::Error(error.to_owned()));
        }
        let may = self.budget.0.get().min(RULE_BUDGET);
        if may == 0 {
            return Err(Failure::OutOfBudget);
        }
        // A copy of `self` costs some nanoseconds for each of its values.
        LEFT.set((may, 1 + self.weight / 64));
        let told = Value::resolve(expression, self.context());
        let left = LEFT.get().0;
        self.budget.0.set(self.budget.0.get().saturating_sub(may - left));
        if left == 0 {
            return Err(Failure::OutOfBudget);
        }
        told.map_err(|error| failure(&error))
    }
}

/// One turn of a loop: of one that copies `self`, or of one that does not.
fn tick(copies_self: bool, held: u64) -> Result<(), ExecutionError> {
    let (left, heavy) = LEFT.get();
    let cost = if copies_self { heavy } else { 1 } + held / 64;
    LEFT.set((left.saturating_sub(cost), heavy));
    if left <= cost {
        return Err(ExecutionError::function_error("loop", "out of budget"));
    }
    Ok(())
}

/// In the words of the server's evaluator, where they are the ones that people meet.
fn failure(error: &ExecutionError) -> Failure {
    let text = if let ExecutionError::NoSuchKey(key) = error {
        format!("no such key: {key}")
    } else if let ExecutionError::IndexOutOfBounds(index) = error {
        let Value::Int(index) = index else { return Failure::NoOverload };
        format!("index out of bounds: {index}")
    } else if matches!(error, ExecutionError::DivisionByZero(_)) {
        "division by zero".to_owned()
    } else if matches!(error, ExecutionError::RemainderByZero(_)) {
        "modulus by zero".to_owned()
    } else if matches!(error, ExecutionError::Overflow(..)) {
        "integer overflow".to_owned()
    } else if let ExecutionError::FunctionError { message, .. } = error {
        message.clone()
    } else if let ExecutionError::UndeclaredReference(name) = error {
        format!("undeclared reference to '{name}'")
    } else {
        return Failure::NoOverload;
    };
    Failure::Error(text)
}
