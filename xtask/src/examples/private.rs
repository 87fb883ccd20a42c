//! What did the platform team of account 111122223333 build?
//!
//! Golden images by release, with channel tags, and the images of seed 1: `my-ami` and the one
//! with machine learning drivers.

use super::wire::{Image, OWN_ACCOUNT, during, ec2_time};

/// Built a day or so after the release of Amazon's that they stand on.
struct Golden {
    day: &'static str,
    base: &'static str,
    channel: &'static str,
    /// The team deprecates by hand, after half a year.
    deprecated_on: Option<&'static str>,
}

const GOLDEN: [Golden; 7] = [
    Golden {
        day: "20260320",
        base: "v20260318",
        channel: "stable",
        deprecated_on: Some("20260920"),
    },
    Golden { day: "20260912", base: "v20260911", channel: "stable", deprecated_on: None },
    Golden { day: "20260926", base: "v20260925", channel: "stable", deprecated_on: None },
    Golden { day: "20261009", base: "v20261008", channel: "stable", deprecated_on: None },
    Golden { day: "20261022", base: "v20261021", channel: "stable", deprecated_on: None },
    Golden { day: "20261104", base: "v20261103", channel: "stable", deprecated_on: None },
    Golden { day: "20261113", base: "v20261112", channel: "canary", deprecated_on: None },
];

/// The id that seed 1 prints in its parameter.
pub(crate) const ML_DRIVERS: &str = "ami-02211404f5aa0b76a";

pub(crate) fn images() -> Vec<Image> {
    let mut images = golden();
    images.extend(copies());
    images.extend(of_seed_1());
    images
}

/// A golden image for 1.35 on `x86_64`, with the tags that all of them have.
pub(crate) fn golden_image(owner: &'static str, release: &str, day: &str, channel: &str) -> Image {
    built(owner, "x86_64", "1.35", release, day, channel)
}

pub(crate) fn golden_id(release: &str) -> String {
    golden_image(OWN_ACCOUNT, release, "20261104", "stable").image_id
}

fn built(
    owner: &'static str,
    architecture: &'static str,
    minor: &str,
    release: &str,
    day: &str,
    channel: &str,
) -> Image {
    let name = format!("golden-al2023-{architecture}-{minor}-{release}");
    let created_at = during(day, &name);
    let mut image = Image::linux(owner, name, architecture, created_at).tagged(&[
        ("team", "platform"),
        ("channel", channel),
        ("os", "al2023"),
        ("arch", architecture),
        ("kubernetes", minor),
    ]);
    image.boot_mode = Some(if architecture == "arm64" { "uefi" } else { "uefi-preferred" });
    image
}

fn golden() -> Vec<Image> {
    let mut images = Vec::new();
    for minor in ["1.34", "1.35"] {
        for architecture in ["x86_64", "arm64"] {
            for Golden { day, base, channel, deprecated_on } in &GOLDEN {
                let release = format!("v{day}");
                let mut image = built(OWN_ACCOUNT, architecture, minor, &release, day, channel)
                    .tagged(&[("base", base)]);
                image.description =
                    Some(format!("Amazon Linux 2023 {base} with our agents, Kubernetes {minor}"));
                image.deprecation_time = deprecated_on.map(|it| ec2_time(during(it, &image.name)));
                images.push(image);
            }
        }
    }
    images
}

/// Made lately from older images: by their own date they would be the newest.
fn copies() -> [Image; 2] {
    let mut encrypted = golden_image(OWN_ACCOUNT, "v20261009-encrypted", "20261106", "stable");
    encrypted.source_image_id = Some(golden_id("v20261009"));
    encrypted.source_image_region = Some(super::wire::REGION);
    encrypted.description = Some("[Copied] encrypted with the team's key".to_owned());

    // Its source lives where this catalog did not look.
    let mut from_east = golden_image(OWN_ACCOUNT, "v20260926-east", "20261002", "stable");
    from_east.source_image_id = Some("ami-0d5f8c1b7a3e92460".to_owned());
    from_east.source_image_region = Some("us-east-1");
    from_east.description = Some("[Copied] from us-east-1".to_owned());
    [encrypted, from_east]
}

fn of_seed_1() -> Vec<Image> {
    let own = |name: &str, architecture, day: &str| {
        Image::linux(OWN_ACCOUNT, name.to_owned(), architecture, during(day, name))
    };
    let mut my_ami = own("my-ami", "x86_64", "20260918").tagged(&[("team", "platform")]);
    my_ami.description = Some("The standard image, built by hand".to_owned());

    let drivers = [
        ("ml-drivers-al2023-arm64-v20260814", "arm64", "20260814"),
        ("ml-drivers-al2023-arm64-v20261015", "arm64", "20261015"),
        ("ml-drivers-al2023-x86_64-v20260814", "x86_64", "20260814"),
        ("ml-drivers-al2023-x86_64-v20261015", "x86_64", "20261015"),
    ];
    let mut images = vec![my_ami];
    for (name, architecture, day) in drivers {
        let mut image = own(name, architecture, day).tagged(&[("team", "ml"), ("gpu", "nvidia")]);
        image.description = Some("Amazon Linux 2023 with NVIDIA drivers and CUDA".to_owned());
        image.boot_mode = Some(if architecture == "arm64" { "uefi" } else { "uefi-preferred" });
        if name == "ml-drivers-al2023-arm64-v20261015" {
            ML_DRIVERS.clone_into(&mut image.image_id);
        }
        images.push(image);
    }
    images
}
