//! A control plane that has not heard of what its node knows sends it nothing of that.

use super::*;

#[tokio::test(start_paused = true)]
async fn fr_011_a_node_that_knows_more_than_this_process_is_sent_nothing_that_is_over() {
    let here = wanted(7, 4, 2);
    for (elsewhere, hears) in [(wanted(8, 1, 1), false), (wanted(7, 5, 3), false), (wanted(7, 3, 1), true)] {
        let (mut node, actions) = Node::greeted(here.clone(), hello(Some(target(&elsewhere))));
        assert_eq!(!actions.is_empty(), hears, "{elsewhere:?}");
        // Nothing was refused, so that what this process hears of next is sent.
        let next = wanted(8, 6, 4);
        if !hears {
            assert_eq!(revision_of(update(&node.on(Event::Wanted(next)))), 6);
        }
    }
}
