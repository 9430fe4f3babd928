//! Images: had, found, kept while they are used.

use std::sync::Arc;

use transom_runtime::Pull;

use crate::backend::{Backend, Role};
use crate::tool::Place;

super::cases! {
    an_image_that_was_pulled_is_found_by_name_and_by_id,
    an_image_in_use_is_not_removed,
}

fn pull(backend: &dyn Backend) -> Pull {
    Pull {
        reference: backend.image(),
        credentials: Vec::new(),
        progress: None,
    }
}

async fn an_image_that_was_pulled_is_found_by_name_and_by_id(backend: Arc<dyn Backend>) {
    let runtime = backend.open().await;
    let image = runtime.pull(&pull(&*backend)).await.unwrap();
    assert_eq!(runtime.pull(&pull(&*backend)).await.unwrap(), image);
    let by_name = runtime.image(&backend.image()).await.unwrap();
    assert_eq!(by_name.as_ref(), Some(&image));
    assert_eq!(runtime.image(&image.id).await.unwrap(), Some(image.clone()));
    assert!(runtime.images().await.unwrap().contains(&image));
    let space = runtime.image_space().await.unwrap();
    assert!(space.capacity_bytes >= space.available_bytes && space.capacity_bytes > 0);
}

async fn an_image_in_use_is_not_removed(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let image = place.runtime.pull(&pull(&*place.backend)).await.unwrap();
    let mut spec = place.spec("main", &Role::Run);
    spec.image.clone_from(&image.id);
    place.create(&spec).await;
    assert!(place.runtime.remove_image(&image.id).await.is_err());
    assert!(place.runtime.images().await.unwrap().contains(&image));
    place.clean_up().await;
}
