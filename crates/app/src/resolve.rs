//! Which image would this class boot, and why not the others?

mod text;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nodemolt_api::ec2nodeclass::{self, AmiSelectorTerm, EC2NodeClass, EC2NodeClassSpec};
use nodemolt_api::into_core::PoolOfClass;
use nodemolt_api::problem::Severity;
use nodemolt_core::ask::Ask;
use nodemolt_core::image::ImageId;
use nodemolt_core::resolve::{
    Answer, Boots, Machines, Pool, Setting, TypeAnswer, TypesAsked, resolve,
};
use nodemolt_fit::{Family, Operator, Types, label};

use crate::cli::{self, Format};
use crate::input;
use crate::output::{self, Exit, Failure, Look};

/// What a class is called that was typed and not read.
const TYPED: &str = "(typed)";

pub(crate) fn run(verb: &cli::Resolve, look: Look) -> Result<output::Answer, Failure> {
    let mut objects = input::read_objects(&verb.files)?;
    if !verb.ask.is_empty() {
        objects.classes.push(typed_class(&verb.ask)?);
    }
    if objects.classes.is_empty() {
        return Err(Failure::usage("nothing was asked").hint(
            "pass -f FILE with an EC2NodeClass, or ask in words: `nodemolt resolve alias=al2023@latest …`",
        ));
    }
    for (_, ask) in &objects.classes {
        input::check_setting(ask, &objects.policy, verb.kubernetes, verb.account.as_ref())?;
    }
    let mut warnings = Vec::new();
    let types = input::read_types(&verb.types, &mut warnings)?;
    for name in &verb.instance_types {
        types.find(name).map_err(|it| Failure::usage(format!("--instance-types: {it}")))?;
    }
    let read = input::read_catalog(&verb.catalog)?;
    warnings.extend(read.warnings);
    let now = input::moment(verb.at);
    // Without --at the catalog is what it is: an image from the future is then an oddity and not a
    // later one.
    let known = read.catalog.images.len();
    let catalog = if verb.at.is_some() { read.catalog.as_of(now) } else { read.catalog };
    let later = known - catalog.images.len();
    if later > 0 {
        warnings
            .push(format!("{later} images of the catalog are later than --at, and did not exist"));
    }
    let index = catalog.index(now);

    let mut machines: BTreeMap<Family, Machines> = BTreeMap::new();
    for (_, ask) in &objects.classes {
        machines.entry(ask.family).or_insert_with(|| Machines::new(&types, ask.family));
    }

    let mut worst = Answer::Found;
    let mut items = Vec::new();
    for pool in &objects.pools {
        if !objects.classes.iter().any(|(class, _)| refers(pool, class)) {
            warnings.push(format!(
                "pool `{}` refers to class `{}` of {}, which was not given",
                pool.pool.name, pool.class_name, pool.class_group
            ));
        }
    }
    for (class, ask) in &objects.classes {
        let mut ask = ask.clone();
        if let Some(age) = verb.min_age {
            ask.minimum_age = age;
        }
        let Some(machines) = machines.get(&ask.family) else { continue };
        let pools = pools_of(class, &objects.pools);
        let asked = types_asked(&verb.instance_types, &pools, &types)?;
        let setting = Setting {
            kubernetes: verb.kubernetes,
            account: verb.account.clone(),
            machines,
            types: asked.clone(),
            pools,
            in_use: in_use(class, &verb.in_use, &mut warnings),
        };
        let resolution = resolve(&index, &ask, &objects.policy, &setting);
        let in_no_pool = in_no_pool(&asked, &resolution.types);
        let answer =
            strictly(resolution.answer(&asked), &setting.pools, &resolution.types, &in_no_pool);
        worst = worst.max(answer);
        let question = view::Question {
            ask: &ask,
            policy: &objects.policy,
            setting: &setting,
            index: &index,
            overridden: verb.min_age.is_some(),
            in_no_pool,
            answer,
        };
        items.push(view::view(&question, &resolution));
    }

    let mut talk = objects.talk;
    for warning in &warnings {
        let _ = writeln!(talk, "warning: {warning}");
    }
    let list = view::ResolutionList::new(now, items);
    let data = match verb.output {
        Format::Json | Format::Yaml => output::serialize(verb.output, &list)?,
        Format::Name => text::names(&list),
        Format::Table | Format::Wide => {
            let wide = verb.output == Format::Wide;
            if verb.explain {
                text::explain(&list, look, wide)
            } else {
                text::table(&list, look, wide, !verb.no_headers, !verb.instance_types.is_empty())
            }
        }
    };
    talk.push_str(&text::talk(
        &list,
        verb.explain && matches!(verb.output, Format::Table | Format::Wide),
    ));
    let exit = match worst {
        Answer::Found => Exit::Done,
        Answer::HeldBack => Exit::HeldBack,
        Answer::NoMatch => Exit::Failed,
    };
    Ok(output::Answer { data: look.plain(&data), talk: look.plain(&talk), exit })
}

/// `alias=al2023@latest`, `name=golden-* owner=self`: one term, by the rules that a class has.
fn typed_class(words: &[String]) -> Result<(EC2NodeClass, Ask), Failure> {
    let mut term = AmiSelectorTerm::default();
    let mut family = None;
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{word}` is not KEY=VALUE")).hint(
                "for example alias=al2023@latest, id=ami-…, name=golden-*, owner=self, ssmParameter=/my-org/golden, tag:team=web",
            ))?;
        let slot = match key {
            "alias" => &mut term.alias,
            "id" => &mut term.id,
            "name" => &mut term.name,
            "owner" => &mut term.owner,
            "ssmParameter" | "ssm-parameter" => &mut term.ssm_parameter,
            "family" | "amiFamily" => &mut family,
            tag if tag.starts_with("tag:") => {
                let tags = term.tags.get_or_insert_default();
                tags.insert(tag["tag:".len()..].to_owned(), value.to_owned());
                continue;
            }
            other => {
                return Err(Failure::usage(format!("`{other}` in `{word}` cannot be asked for"))
                    .hint("known are alias, id, name, owner, ssmParameter, tag:KEY and family"));
            }
        };
        if slot.is_some() {
            return Err(Failure::usage(format!("`{key}` was given twice")));
        }
        *slot = Some(value.to_owned());
    }
    // `alias=al2023` and `family=AL2023` mean the newest.
    if let Some(alias) = term.alias.as_mut().filter(|it| !it.contains('@')) {
        alias.push_str("@latest");
    }
    let empty = term == AmiSelectorTerm::default();
    if family.is_none() && term.alias.is_none() {
        family = Some("Custom".to_owned());
    }
    let mut class = EC2NodeClass {
        api_version: ec2nodeclass::KARPENTER_V1.to_owned(),
        kind: ec2nodeclass::KIND.to_owned(),
        ..EC2NodeClass::default()
    };
    class.metadata.name = TYPED.into();
    class.spec = EC2NodeClassSpec {
        ami_selector_terms: (!empty).then(|| vec![term]),
        ami_family: family,
        ..EC2NodeClassSpec::default()
    };
    let refused = |field: &str, message: &str| {
        let field = field.replace("spec.amiSelectorTerms[0].", "").replace("spec.", "");
        Failure::usage(format!("{field}: {message}"))
    };
    if let Some(finding) =
        ec2nodeclass::check(&class).into_iter().find(|it| it.severity == Severity::Error)
    {
        return Err(refused(&finding.field, &finding.message));
    }
    match Ask::try_from(&class) {
        Ok(ask) => Ok((class, ask)),
        Err(findings) => Err(findings.first().map_or_else(
            || Failure::usage("cannot be asked for"),
            |it| refused(&it.field, &it.message),
        )),
    }
}

/// Whether a pool refers to this very class: two groups may hold one name.
fn refers(pool: &PoolOfClass, class: &EC2NodeClass) -> bool {
    let group = class.api_version.split('/').next().unwrap_or_default();
    pool.class_name == class.metadata.name && pool.class_group == group
}

fn pools_of(class: &EC2NodeClass, pools: &[PoolOfClass]) -> Vec<Pool> {
    pools.iter().filter(|it| refers(it, class)).map(|it| it.pool.clone()).collect()
}

/// The instance types that a pool names.
fn named_by(pool: &Pool) -> impl Iterator<Item = &String> {
    pool.requirements
        .iter()
        .filter(|it| {
            label::normalise(&it.key) == label::INSTANCE_TYPE && it.operator == Operator::In
        })
        .flat_map(|it| &it.values)
}

/// What was asked for by name, and no pool would launch.
fn in_no_pool(asked: &TypesAsked, answers: &[TypeAnswer]) -> Vec<String> {
    let TypesAsked::Named(names) = asked else { return Vec::new() };
    let answered: BTreeSet<&str> = answers.iter().map(|it| &*it.instance_type).collect();
    names.iter().filter(|it| !answered.contains(it.as_str())).cloned().collect()
}

/// A type that was named, by hand or by a pool, must have an image, whatever other pools leave open.
fn strictly(
    answer: Answer,
    pools: &[Pool],
    answers: &[TypeAnswer],
    in_no_pool: &[String],
) -> Answer {
    let named: BTreeSet<(&str, &str)> = pools
        .iter()
        .flat_map(|pool| named_by(pool).map(|name| (pool.name.as_str(), name.as_str())))
        .collect();
    let missing = answers.iter().any(|it| {
        let pool = it.pool.as_deref().unwrap_or_default();
        matches!(it.boots, Boots::Nothing { .. }) && named.contains(&(pool, &*it.instance_type))
    });
    if answer == Answer::Found && (missing || !in_no_pool.is_empty()) {
        Answer::NoMatch
    } else {
        answer
    }
}

/// What was named on the command line, or else what every pool names; anything, if some pool names none.
fn types_asked(named: &[String], pools: &[Pool], types: &Types) -> Result<TypesAsked, Failure> {
    for pool in pools {
        for name in named_by(pool) {
            types
                .find(name)
                .map_err(|unknown| Failure::new(format!("pool `{}`: {unknown}", pool.name)))?;
        }
    }
    if !named.is_empty() {
        return Ok(TypesAsked::Named(named.iter().cloned().collect()));
    }
    let mut all = BTreeSet::new();
    for pool in pools {
        let before = all.len();
        all.extend(named_by(pool).cloned());
        if named_by(pool).next().is_none() && all.len() == before {
            return Ok(TypesAsked::Any);
        }
    }
    Ok(if all.is_empty() { TypesAsked::Any } else { TypesAsked::Named(all) })
}

/// What the command line and the class's status say is running.
fn in_use(
    class: &EC2NodeClass,
    named: &[ImageId],
    warnings: &mut Vec<String>,
) -> BTreeSet<ImageId> {
    let mut all: BTreeSet<ImageId> = named.iter().cloned().collect();
    let amis = class.status.as_ref().and_then(|it| it.amis.as_ref()).into_iter().flatten();
    for ami in amis {
        match ami.id.as_deref().map(str::parse::<ImageId>) {
            Some(Ok(id)) => {
                all.insert(id);
            }
            Some(Err(error)) => {
                warnings.push(format!("class `{}`: status.amis: {error}", class.metadata.name));
            }
            None => {}
        }
    }
    all
}
