"""Every page of the book on a desk, light and dark. In a file of its own, since another core tests the phone."""

from helpers.look import faults_of_every_page
from helpers.visit import DESK


def test_every_page_on_a_desk(browser, server, pages):
    assert faults_of_every_page(browser, server, pages, DESK) == []
