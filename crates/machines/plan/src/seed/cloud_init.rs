//! Seeds for cloud-init, with the files and keys of upstream's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{DiskFiles, Objects, Reference, SeedError, TaggedCard, named, tagged};
use crate::iso::File;
use crate::machine::MachinePlan;
use crate::view::{CloudInit, Propagation, VirtualMachineInstance};

/// Annotations that name a machine's size; that of everybody's sizes comes first.
const INSTANCETYPES: [&str; 2] = [
    "kubevirt.io/cluster-instancetype-name",
    "kubevirt.io/instancetype-name",
];

struct Data {
    user: Vec<u8>,
    network: Vec<u8>,
}

pub(super) fn no_cloud(
    vmi: &VirtualMachineInstance,
    plan: &MachinePlan,
    volume: &str,
    seed: &CloudInit,
    objects: &Objects,
) -> Result<DiskFiles, SeedError> {
    let data = data(volume, seed, objects)?;
    let mut about = Map::new();
    insert(&mut about, "instance-type", instance_type(vmi));
    about.insert("instance-id".to_owned(), json!(plan.uuid));
    insert(&mut about, "local-hostname", plan.hostname.clone());
    let keys = keys(vmi, volume, objects, |way| way.no_cloud.is_some())?;
    if !keys.is_empty() {
        about.insert("public-keys".to_owned(), Value::Object(keys));
    }
    let mut files = vec![
        File::new("meta-data", Value::Object(about).to_string()),
        File::new("user-data", data.user),
    ];
    if !data.network.is_empty() {
        files.push(File::new("network-config", data.network));
    }
    Ok(DiskFiles {
        label: "cidata".to_owned(),
        files,
    })
}

pub(super) fn config_drive(
    vmi: &VirtualMachineInstance,
    plan: &MachinePlan,
    volume: &str,
    seed: &CloudInit,
    objects: &Objects,
    cards: &[TaggedCard],
) -> Result<DiskFiles, SeedError> {
    let data = data(volume, seed, objects)?;
    let mut about = Map::new();
    insert(&mut about, "instance_type", instance_type(vmi));
    about.insert(
        "instance_id".to_owned(),
        json!(format!("{}.{}", plan.name, plan.namespace)),
    );
    insert(&mut about, "hostname", plan.hostname.clone());
    about.insert("uuid".to_owned(), json!(plan.uuid));
    if !cards.is_empty() {
        about.insert("devices".to_owned(), tagged(cards));
    }
    let keys = keys(vmi, volume, objects, |way| way.config_drive.is_some())?;
    if !keys.is_empty() {
        about.insert("public_keys".to_owned(), Value::Object(keys));
    }
    let mut files = vec![
        File::new(
            "openstack/latest/meta_data.json",
            Value::Object(about).to_string(),
        ),
        File::new("openstack/latest/user_data", data.user),
    ];
    if !data.network.is_empty() {
        files.push(File::new("openstack/latest/network_data.json", data.network));
    }
    Ok(DiskFiles {
        label: "config-2".to_owned(),
        files,
    })
}

fn insert(about: &mut Map<String, Value>, key: &str, value: String) {
    if !value.is_empty() {
        about.insert(key.to_owned(), Value::String(value));
    }
}

fn instance_type(vmi: &VirtualMachineInstance) -> String {
    let names = INSTANCETYPES
        .iter()
        .filter_map(|it| vmi.metadata.annotations.get(*it));
    names
        .into_iter()
        .find(|it| !it.is_empty())
        .cloned()
        .unwrap_or_default()
}

/// User data and network configuration: from a Secret if one is named, else as written, else decoded.
fn data(volume: &str, seed: &CloudInit, objects: &Objects) -> Result<Data, SeedError> {
    let user = seed.secret_ref.as_ref().map(|it| it.name.as_str());
    let network = seed.network_data_secret_ref.as_ref().map(|it| it.name.as_str());
    let user = from_secret(volume, user, &["userdata", "userData"], objects)?;
    let network = from_secret(volume, network, &["networkdata", "networkData"], objects)?;
    // Upstream bears with one of two that is not there.
    match (&user, &network) {
        (Some(Found::NoKey(error)), None | Some(Found::NoKey(_))) | (None, Some(Found::NoKey(error))) => {
            return Err(error.clone());
        }
        _ => {}
    }
    let written = |found: Option<Found>, plain: &str, encoded: &str, field: &'static str| {
        if let Some(Found::Value(value)) = found
            && !value.is_empty()
        {
            return Ok(value);
        }
        if !plain.is_empty() {
            return Ok(plain.as_bytes().to_vec());
        }
        STANDARD.decode(encoded).map_err(|_| SeedError::FieldEncoding {
            volume: volume.to_owned(),
            field,
        })
    };
    let data = Data {
        user: written(user, &seed.user_data, &seed.user_data_base64, "userDataBase64")?,
        network: written(
            network,
            &seed.network_data,
            &seed.network_data_base64,
            "networkDataBase64",
        )?,
    };
    if data.user.is_empty() && data.network.is_empty() {
        return Err(SeedError::NoData {
            volume: volume.to_owned(),
        });
    }
    Ok(data)
}

enum Found {
    Value(Vec<u8>),
    NoKey(SeedError),
}

fn from_secret(
    volume: &str,
    name: Option<&str>,
    keys: &[&str],
    objects: &Objects,
) -> Result<Option<Found>, SeedError> {
    let Some(name) = name.filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    let reference = Reference::Secret(name.to_owned());
    let content = objects.get(&reference).ok_or_else(|| SeedError::Missing {
        volume: volume.to_owned(),
        object: named(&reference),
    })?;
    let value = keys.iter().find_map(|key| content.get(*key));
    Ok(Some(match value {
        Some(value) => Found::Value(value.clone()),
        None => Found::NoKey(SeedError::NoKey {
            volume: volume.to_owned(),
            object: named(&reference),
            keys: keys.join(", "),
        }),
    }))
}

/// Keys that may log in, numbered over all Secrets that go this way.
fn keys(
    vmi: &VirtualMachineInstance,
    volume: &str,
    objects: &Objects,
    this_way: fn(&Propagation) -> bool,
) -> Result<Map<String, Value>, SeedError> {
    let mut keys = Map::new();
    for credential in &vmi.spec.access_credentials {
        let Some(key) = credential
            .ssh_public_key
            .as_ref()
            .filter(|it| this_way(&it.propagation_method))
        else {
            continue;
        };
        let Some(name) = key.source.name() else {
            continue;
        };
        let reference = Reference::Secret(name.to_owned());
        let content = objects.get(&reference).ok_or_else(|| SeedError::Missing {
            volume: volume.to_owned(),
            object: named(&reference),
        })?;
        for value in content.values().filter(|it| !it.is_empty()) {
            let text = String::from_utf8_lossy(value).into_owned();
            keys.insert(keys.len().to_string(), Value::String(text));
        }
    }
    Ok(keys)
}
