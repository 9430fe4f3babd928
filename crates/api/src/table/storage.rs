//! Rows of volumes, of claims to them and of what makes them.

use serde_json::Value;

use super::{
    AGE, Column, NAME, Printer,
    row::{Row, plain, text_of},
};

/// Classes were named by an annotation once, and it still wins.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

fn class<'a>(row: &Row<'a>) -> &'a str {
    row.annotation(CLASS)
        .unwrap_or_else(|| row.text("/spec/storageClassName"))
}

/// `RWO,RWX`: each mode once, in a fixed order.
fn access_modes(row: &Row, pointer: &str) -> String {
    let modes = row.list(pointer);
    let has = |mode: &str| modes.iter().any(|value| value.as_str() == Some(mode));
    let short: Vec<&str> = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| has(mode))
    .map(|(_, short)| short)
    .collect();
    short.join(",")
}

fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.is_deleted() {
        "Terminating"
    } else {
        row.text("/status/phase")
    }
}

fn quantity(row: &Row, pointer: &str) -> String {
    row.get(pointer)
        .map_or_else(|| "0".to_owned(), |value| plain(Some(value)))
}

pub(super) static PERSISTENT_VOLUME: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Capacity", "How much the volume holds."),
        Column::text("Access Modes", "How the volume may be mounted."),
        Column::text(
            "Reclaim Policy",
            "What becomes of the volume when its claim goes.",
        ),
        Column::text("Status", "Whether the volume is bound."),
        Column::text("Claim", "The claim the volume is bound to."),
        Column::text("StorageClass", "StorageClass of the pv"),
        Column::text("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        Column::text("Reason", "Why the volume failed."),
        AGE,
        Column::text("VolumeMode", "Whether the volume has a file system.").wide(),
    ],
    cells: |row| {
        let claim = row
            .get("/spec/claimRef")
            .map(|claim| format!("{}/{}", text_of(claim, "namespace"), text_of(claim, "name")));
        vec![
            row.name(),
            quantity(row, "/spec/capacity/storage").into(),
            access_modes(row, "/spec/accessModes").into(),
            row.text("/spec/persistentVolumeReclaimPolicy").into(),
            phase(row).into(),
            claim.unwrap_or_default().into(),
            class(row).into(),
            row.text_or("/spec/volumeAttributesClassName", "<unset>")
                .into(),
            row.text("/status/reason").into(),
            row.age(),
            row.text_or("/spec/volumeMode", "<unset>").into(),
        ]
    },
};

pub(super) static PERSISTENT_VOLUME_CLAIM: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Status", "Whether the claim is bound."),
        Column::text("Volume", "The volume the claim is bound to."),
        Column::text("Capacity", "How much the volume holds."),
        Column::text("Access Modes", "How the volume may be mounted."),
        Column::text("StorageClass", "StorageClass of the pvc"),
        Column::text("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        AGE,
        Column::text("VolumeMode", "Whether the volume has a file system.").wide(),
    ],
    cells: |row| {
        let volume = row.text("/spec/volumeName");
        let (capacity, modes) = if volume.is_empty() {
            (String::new(), String::new())
        } else {
            (
                quantity(row, "/status/capacity/storage"),
                access_modes(row, "/status/accessModes"),
            )
        };
        vec![
            row.name(),
            phase(row).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            class(row).into(),
            row.text_or("/spec/volumeAttributesClassName", "<unset>")
                .into(),
            row.age(),
            row.text_or("/spec/volumeMode", "<unset>").into(),
        ]
    },
};

/// The name, marked if one of the annotations says that the object is the default of its kind.
fn name_or_default(row: &Row, annotations: &[&str]) -> Value {
    let default = annotations
        .iter()
        .any(|annotation| row.annotation(annotation) == Some("true"));
    let mark = if default { " (default)" } else { "" };
    format!("{}{mark}", row.text("/metadata/name")).into()
}

pub(super) static STORAGE_CLASS: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Provisioner", "Who makes volumes of this class."),
        Column::text(
            "ReclaimPolicy",
            "What becomes of a volume when its claim goes.",
        ),
        Column::text("VolumeBindingMode", "When volumes are made and bound."),
        Column::text("AllowVolumeExpansion", "Whether volumes may grow."),
        AGE,
    ],
    cells: |row| {
        let name = name_or_default(
            row,
            &[
                "storageclass.kubernetes.io/is-default-class",
                "storageclass.beta.kubernetes.io/is-default-class",
            ],
        );
        vec![
            name,
            row.text("/provisioner").into(),
            row.text_or("/reclaimPolicy", "Delete").into(),
            row.text_or("/volumeBindingMode", "Immediate").into(),
            row.flag("/allowVolumeExpansion", false).into(),
            row.age(),
        ]
    },
};

pub(super) static VOLUME_ATTRIBUTES_CLASS: Printer = Printer {
    columns: &[
        NAME,
        Column::text("DriverName", "The driver the class is for."),
        AGE,
    ],
    cells: |row| {
        let name = name_or_default(
            row,
            &["volumeattributesclass.alpha.kubernetes.io/is-default-class"],
        );
        vec![name, row.text("/driverName").into(), row.age()]
    },
};

pub(super) static VOLUME_ATTACHMENT: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Attacher", "The driver that attaches the volume.").named(),
        Column::text("PV", "The volume that is attached."),
        Column::text("Node", "The node it is attached to."),
        Column::boolean("Attached", "Whether it is attached."),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            row.text("/spec/attacher").into(),
            row.text("/spec/source/persistentVolumeName").into(),
            row.text("/spec/nodeName").into(),
            row.flag("/status/attached", false).into(),
            row.age(),
        ]
    },
};

pub(super) static CSI_NODE: Printer = Printer {
    columns: &[
        NAME,
        Column::integer("Drivers", "How many drivers are registered on the node."),
        AGE,
    ],
    cells: |row| vec![row.name(), row.length("/spec/drivers").into(), row.age()],
};

pub(super) static CSI_DRIVER: Printer = Printer {
    columns: &[
        NAME,
        Column::boolean(
            "AttachRequired",
            "Whether volumes must be attached before they are mounted.",
        ),
        Column::boolean(
            "PodInfoOnMount",
            "Whether the driver wants to know the pod.",
        ),
        Column::boolean(
            "StorageCapacity",
            "Whether the scheduler looks at the capacity that is left.",
        ),
        Column::text("TokenRequests", "For whom the driver needs tokens."),
        Column::boolean(
            "RequiresRepublish",
            "Whether the driver wants to be called again and again.",
        ),
        Column::text("Modes", "Which volumes the driver makes."),
        AGE,
    ],
    cells: |row| {
        let all = |list: &[Value], text: fn(&Value) -> &str| -> String {
            let texts: Vec<&str> = list.iter().map(text).collect();
            texts.join(",")
        };
        let modes = all(row.list("/spec/volumeLifecycleModes"), |mode| {
            mode.as_str().unwrap_or_default()
        });
        let tokens = match row.get("/spec/tokenRequests") {
            None => "<unset>".to_owned(),
            Some(_) => all(row.list("/spec/tokenRequests"), |token| {
                text_of(token, "audience")
            }),
        };
        vec![
            row.name(),
            row.flag("/spec/attachRequired", true).into(),
            row.flag("/spec/podInfoOnMount", false).into(),
            row.flag("/spec/storageCapacity", false).into(),
            tokens.into(),
            row.flag("/spec/requiresRepublish", false).into(),
            if modes.is_empty() {
                "<none>".into()
            } else {
                modes.into()
            },
            row.age(),
        ]
    },
};

pub(super) static CSI_STORAGE_CAPACITY: Printer = Printer {
    columns: &[
        NAME,
        Column::text("StorageClassName", "The class the capacity is of."),
        Column::text("Capacity", "How much is left."),
    ],
    cells: |row| {
        let capacity = match row.get("/capacity") {
            None => "<unset>".to_owned(),
            value => plain(value),
        };
        vec![
            row.name(),
            row.text("/storageClassName").into(),
            capacity.into(),
        ]
    },
};
