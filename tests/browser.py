"""A real browser without a window, for tests of the site."""

import os
import shutil
from contextlib import contextmanager

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def open_browser(folder):
    """Chromium, driven by selenium, with a home of its own; skips where either is missing."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("there is no chromium with its chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    # Its own sandbox needs rights that root in a container has not.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", *sandbox):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={folder}")
    page = webdriver.Chrome(options, webdriver.ChromeService(executable_path=driver))
    try:
        yield page
    finally:
        page.quit()
