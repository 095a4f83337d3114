import numpy as np

from subnorm_lab.checks.shared import Case, Scores, exercise
from subnorm_lab.checks.speech import speech

END = 1
VOCABULARY = 9


def cases(rng):
    """Stories of a chosen length. No two scores are close, so that rounding decides nothing; all are below 0."""

    def case(name, prompt, count, length):
        while True:
            table = np.array([rng.permutation(VOCABULARY) for _ in range(89)]) * 1.5 - 19.75
            args = (Scores(table), prompt, count, END)
            story = tell.reference(*args)
            told = len(story) == length and (length == count) != ends(*args)
            if prompt == [END] and 0 not in story:
                continue  # one that stops at any token up to END has to stop too early
            if told and len(set(story)) >= min(length, 3) and (not length or story[0] != story[-1]):
                return Case(name, args)

    def ends(scores, prompt, count, end):
        return tell.reference(scores, prompt, count + 1, end)[count:] == []

    first, second, third = (int(k) for k in rng.permutation(np.arange(2, VOCABULARY))[:3])
    return [
        case("a story that count cuts off after 6 tokens", [END], 6, 6),
        case("a story that ends by itself after 4 tokens", [END, first], 12, 4),
        case("a prompt of 10 tokens, and 5 to tell", [END, *[second, third, second] * 3], 5, 5),
        case("a story that ends at once", [END, third], 5, 0),
        case("no token to tell", [END, first], 0, 0),
    ]


@exercise(
    number=6, level=2, minutes=12, chapter="06-the-block-assembled",
    objective="write the loop that turns scores into a story",
    cases=cases, speaks=speech,
    facts=[
        ("there are no more than count tokens", lambda story, scores, tokens, count, end: len(story) <= count),
        ("end is not among them", lambda story, scores, tokens, count, end: end not in story),
    ],
    mistakes=[
        ("only_last", "next_scores(tokens + story) -> next_scores((tokens + story)[-1:])",
         "the model reads only the last token; it needs the whole text so far."),
        ("story_not_read", "next_scores(tokens + story) -> next_scores(tokens)",
         "the model reads the prompt each time, so it gives the same token again; it must read the story, too.",
         "keras-team/keras-hub/issues/1588"),
        ("prompt_not_read", "next_scores(tokens + story) -> next_scores(story or tokens)",
         "once the story has begun, the model no longer reads the prompt; it needs prompt and story."),
        ("appended_twice", "tokens + story) -> tokens + [token for token in story for _ in range(2)])",
         "the model reads each new token twice; append it once.", "openai/gpt-oss/pull/306"),
        ("prompt_returned", "return story -> return tokens + story",
         "the prompt is returned with the story; return the new tokens alone."),
        ("never_stops", "if token == end: -> if token is None:",
         "the story goes on after its end; stop when the new token is end.", "Lightning-AI/litgpt/pull/812"),
        ("end_told", "break -> return [*story, end]",
         "the result contains end, which only marks the end of the story; leave it out."),
        ("end_in_prompt", "if token == end: -> if end in tokens:",
         "the loop stops because the prompt contains end, which begins every story; look at the new token."),
        ("one_short", "range(count) -> range(count - 1)", "the story is one token short of count."),
        ("one_too_many", "range(count) -> range(count + 1)", "the story may have one token more than count."),
        ("prompt_counted", "range(count) -> range(count - len(tokens))",
         "count includes the prompt; it is the number of new tokens."),
        ("least_likely", "np.argmax -> np.argmin", "you take the token with the smallest score; take the largest."),
        ("largest_score", "np.argmax -> np.max",
         "you use the largest score itself as the token; the token is its position, which argmax gives."),
        ("second_best", "np.argmax(next_scores(tokens + story)) -> np.argsort(next_scores(tokens + story))[-2]",
         "you take the token with the second largest score; take the largest."),
    ],
)
def tell(next_scores, tokens, count, end):
    story = []
    for _ in range(count):
        token = int(np.argmax(next_scores(tokens + story)))
        if token == end:
            break
        story.append(token)
    return story
