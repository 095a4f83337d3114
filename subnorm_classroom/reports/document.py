"""The frame that all pages of the grader share."""

#: A page that needs nothing else: no script, no request, readable on a phone.
DOCUMENT = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def document(title: str, style: str, body: str) -> str:
    """A page of the grader; the title and the body are HTML."""
    return DOCUMENT.format(title=title, style=style, body=body)
