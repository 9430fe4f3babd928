//! Which nodes an image can run on. An image of which nothing is known runs anywhere.

use std::collections::HashMap;

use transom_model::{
    Platform,
    images::{ImageSpec, ImageStatus, object_name},
    node,
    windows::{Isolation, Verdict, compatibility},
};

use crate::{
    node::NodeFacts,
    text::{Text, Texts},
};

/// What is known of images, by canonical name.
#[derive(Debug, Default)]
pub(crate) struct Images {
    known: HashMap<Text, Known>,
    /// The images that objects are about.
    objects: HashMap<String, Text>,
}

#[derive(Debug, PartialEq, Eq)]
struct Known {
    platforms: Box<[Platform]>,
    /// Somebody looked, with or without success.
    is_answer: bool,
}

impl Images {
    /// Learns what an object tells. One that is not called as it should be tells nothing.
    pub(crate) fn put(
        &mut self,
        name: &str,
        spec: &ImageSpec,
        status: Option<&ImageStatus>,
        texts: &mut Texts,
    ) {
        self.remove(name);
        if object_name(&spec.reference) != name {
            tracing::debug!(name, "an object is not called like the image it is about");
            return;
        }
        let reference = texts.keep(&spec.reference);
        let known = Known {
            platforms: status
                .map_or_else(Vec::new, ImageStatus::known_platforms)
                .into(),
            is_answer: status.is_some_and(ImageStatus::is_answer),
        };
        self.objects.insert(name.to_owned(), reference.clone());
        self.known.insert(reference, known);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(reference) = self.objects.remove(name) {
            self.known.remove(&reference);
        }
    }

    pub(crate) fn platforms(&self, image: &Text) -> Option<&[Platform]> {
        let known = self.known.get(image)?;
        Some(&*known.platforms).filter(|platforms| !platforms.is_empty())
    }

    /// Whether nobody has looked yet what an image is for.
    pub(crate) fn is_open(&self, image: &Text) -> bool {
        !self.known.get(image).is_some_and(|known| known.is_answer)
    }
}

/// Whether a node can run an image that is for these platforms.
pub(crate) fn can_run(
    node: &NodeFacts,
    image: &Text,
    platforms: &[Platform],
    is_host_process: bool,
) -> bool {
    let platform = node.platform.as_ref();
    node::can_run(platform, platforms, is_host_process, || {
        node.has_image(image)
    })
}

/// What a node must be for an image, in words.
pub(crate) fn need(platforms: &[Platform]) -> String {
    let mut all: Vec<String> = platforms.iter().map(need_of_one).collect();
    all.sort();
    all.dedup();
    all.join(" or ")
}

fn need_of_one(platform: &Platform) -> String {
    let Some(container) = platform.os_version else {
        return format!("needs {platform}");
    };
    // A host without containers refuses everything and says what it would take.
    let never = transom_model::windows::WindowsVersion::new(0, 0, 0, None);
    match compatibility(&never, &container, Isolation::Process) {
        Verdict::Incompatible { needs, .. } => {
            format!("{needs}, {}/{}", platform.os, platform.arch)
        }
        _ => format!("needs {platform}"),
    }
}
