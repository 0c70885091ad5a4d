//! Clocks that go back hold nothing up for as long as they went back.

use super::*;

#[test]
fn a_clock_that_goes_back_costs_a_stage_its_pause_once_more_and_not_the_hours() {
    let mut scene = Scene::acknowledged(&["1", "100%"], 4);
    let watched_since_ms = scene.now_ms;
    scene.now_ms -= 2 * 3600 * SECOND;
    scene.rollout.not_after(scene.now_ms);
    let decide = |scene: &Scene| {
        let Scene { rollout, nodes, evidence, now_ms } = scene;
        judge(rollout, &Look { nodes, evidence, now_ms: *now_ms, watched_since_ms })
    };
    assert!(matches!(decide(&scene), Decision::Wait(_)), "the pause begins anew");
    scene.now_ms += scene.rollout.bake_ms;
    assert!(matches!(decide(&scene), Decision::Open { open: 2, .. }), "{:?}", decide(&scene));
}

#[test]
fn times_that_are_over_stay_as_they_are() {
    let scene = Scene::acknowledged(&["1", "100%"], 4);
    let mut later = scene.rollout.clone();
    later.not_after(scene.now_ms);
    assert_eq!(later, scene.rollout);
}
