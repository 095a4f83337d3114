"""The exercises that make a trained model speak: norm, head, feed-forward, block, scores, and the loop."""
