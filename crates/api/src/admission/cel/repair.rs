//! What would the evaluator get wrong?
//!
//! `expression → expression that means what it means on the server`
//!
//! - `all` and `exists` go on after an error in one item, since another may decide: the server's do, the
//!   evaluator's stop.
//! - Where both sides of `&&` or `||` fail, the left one's error is told.
//! - `.?` and `[?_]` on something that is not there are `none`, not an error; and what is selected from
//!   an optional is an optional.
//! - Every loop pays for its turns.
//!
//! What it cannot say at all (messages, loops with two variables) is refused when the CRD is read, not
//! when an object is.

use std::collections::BTreeSet;

use kube::core::cel::cel::{
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, SelectExpr,
        operators,
    },
    parser::Expression,
};

/// Names of functions that no rule can write. The `+` ones run loops whose body mentions `self`.
pub(super) const AND: [&str; 2] = ["@and", "@and+"];
pub(super) const OR: [&str; 2] = ["@or", "@or+"];
pub(super) const STEP: [&str; 2] = ["@step", "@step+"];
pub(super) const BOTH: &str = "@both";
pub(super) const ANY: &str = "@any";
pub(super) const SETTLED: &str = "@settled";
pub(super) const OPTIONAL_MEMBER: &str = "@optional_member";
pub(super) const OPTIONAL_ITEM: &str = "@optional_item";

pub(super) fn repair(expression: Expression) -> Result<Expression, String> {
    let IdedExpr { id, expr } = expression;
    let expr = match expr {
        Expr::Unspecified => return Err("an empty expression".to_owned()),
        Expr::Struct(it) => {
            return Err(format!("messages such as `{}` are not supported", it.type_name));
        }
        Expr::Ident(_) | Expr::Literal(_) => expr,
        Expr::List(it) => {
            let elements = it.elements.into_iter().map(repair).collect::<Result<_, _>>()?;
            Expr::List(ListExpr::new_with_optionals(elements, it.optional_indices))
        }
        Expr::Map(mut it) => {
            for entry in &mut it.entries {
                match &mut entry.expr {
                    EntryExpr::StructField(_) => {
                        return Err("messages are not supported".to_owned());
                    }
                    EntryExpr::MapEntry(entry) => {
                        entry.key = repair(std::mem::take(&mut entry.key))?;
                        entry.value = repair(std::mem::take(&mut entry.value))?;
                    }
                }
            }
            Expr::Map(it)
        }
        Expr::Select(it) => select(it)?,
        Expr::Call(it) => call(it)?,
        Expr::Comprehension(it) => Expr::Comprehension(Box::new(turns(*it)?)),
    };
    Ok(IdedExpr { id, expr })
}

fn select(it: SelectExpr) -> Result<Expr, String> {
    let operand = repair(*it.operand)?;
    if !may_be_optional(&operand) {
        return Ok(Expr::Select(SelectExpr { operand: Box::new(operand), ..it }));
    }
    let field = literal(LiteralValue::String(it.field.as_str().into()));
    let chosen = function(OPTIONAL_MEMBER, vec![operand, field]);
    Ok(if it.test {
        Expr::Call(CallExpr {
            func_name: "hasValue".to_owned(),
            target: Some(Box::new(chosen)),
            args: Vec::new(),
        })
    } else {
        chosen.expr
    })
}

fn call(it: CallExpr) -> Result<Expr, String> {
    let macros = ["all", "exists", "exists_one", "existsOne", "map", "filter"];
    let two_variables = ["transformList", "transformMap", "transformMapEntry", "sortBy", "bind"];
    if macros.contains(&it.func_name.as_str()) || two_variables.contains(&it.func_name.as_str()) {
        return Err(format!("`{}` in this form is not supported", it.func_name));
    }
    let target = it.target.map(|it| repair(*it).map(Box::new)).transpose()?;
    let args = it.args.into_iter().map(repair).collect::<Result<Vec<_>, _>>()?;
    let func_name = match it.func_name.as_str() {
        operators::LOGICAL_AND => BOTH.to_owned(),
        operators::LOGICAL_OR => ANY.to_owned(),
        operators::OPT_SELECT => OPTIONAL_MEMBER.to_owned(),
        operators::OPT_INDEX => OPTIONAL_ITEM.to_owned(),
        operators::INDEX if args.first().is_some_and(may_be_optional) => OPTIONAL_ITEM.to_owned(),
        _ => it.func_name,
    };
    Ok(Expr::Call(CallExpr { func_name, target, args }))
}

fn turns(it: ComprehensionExpr) -> Result<ComprehensionExpr, String> {
    if it.iter_var2.is_some() {
        return Err("loops with two variables are not supported".to_owned());
    }
    let step = repair(it.loop_step)?;
    let copies_self = usize::from(mentions(&step, "self") || mentions(&step, "oldSelf"));
    let mut result = repair(it.result)?;
    let loop_step = match &step.expr {
        Expr::Call(CallExpr { func_name, target: None, args })
            if matches!(func_name.as_str(), BOTH | ANY)
                && matches!(args.first(), Some(IdedExpr { expr: Expr::Ident(name), .. }) if *name == it.accu_var) =>
        {
            result = function(SETTLED, vec![result]);
            let names = if func_name == BOTH { AND } else { OR };
            function(names[copies_self], args.clone())
        }
        Expr::Unspecified
        | Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::Ident(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_) => function(STEP[copies_self], vec![step]),
    };
    Ok(ComprehensionExpr {
        iter_range: repair(it.iter_range)?,
        accu_init: repair(it.accu_init)?,
        loop_cond: repair(it.loop_cond)?,
        loop_step,
        result,
        ..it
    })
}

/// A chain that an optional stands in.
fn may_be_optional(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Call(it) => matches!(it.func_name.as_str(), OPTIONAL_MEMBER | OPTIONAL_ITEM),
        Expr::Ident(_)
        | Expr::Literal(_)
        | Expr::List(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Select(_)
        | Expr::Comprehension(_)
        | Expr::Unspecified => false,
    }
}

/// Whether a variable occurs.
pub(super) fn mentions(expression: &IdedExpr, variable: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == variable)
        || parts(expression).into_iter().any(|it| mentions(it, variable))
}

/// Adds the members of a variable that are looked at. False if it is looked at as a whole.
pub(super) fn members(expression: &IdedExpr, variable: &str, found: &mut BTreeSet<String>) -> bool {
    if let Expr::Select(it) = &expression.expr
        && matches!(&it.operand.expr, Expr::Ident(name) if name == variable)
    {
        found.insert(it.field.clone());
        return true;
    }
    !matches!(&expression.expr, Expr::Ident(name) if name == variable)
        && parts(expression).into_iter().all(|it| members(it, variable, found))
}

/// The expressions right below.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
        Expr::Select(it) => vec![&it.operand],
        Expr::List(it) => it.elements.iter().collect(),
        Expr::Call(it) => it.target.as_deref().into_iter().chain(&it.args).collect(),
        Expr::Map(it) => it.entries.iter().flat_map(|it| entry(&it.expr)).collect(),
        Expr::Struct(it) => it.entries.iter().flat_map(|it| entry(&it.expr)).collect(),
        Expr::Comprehension(it) => {
            vec![&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result]
        }
    }
}

fn entry(it: &EntryExpr) -> Vec<&IdedExpr> {
    match it {
        EntryExpr::StructField(it) => vec![&it.value],
        EntryExpr::MapEntry(it) => vec![&it.key, &it.value],
    }
}

fn plain(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn literal(value: LiteralValue) -> IdedExpr {
    plain(Expr::Literal(value))
}

fn function(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    plain(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}
