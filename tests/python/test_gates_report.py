"""The report of `satformer gates` in headless Chromium: what is shown is what gates.json holds.

Needs `scripts/setup --browser`. SATFORMER_SCREENSHOT=FILE.png also keeps a picture of the page."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

selenium = pytest.importorskip("selenium", reason="needs selenium: scripts/setup --browser")
from selenium import webdriver  # noqa: E402
from selenium.webdriver import ActionChains, Keys  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

CLI = os.environ.get("SATFORMER_CLI")
if not CLI or not pathlib.Path(CLI).exists():
    pytest.skip("SATFORMER_CLI does not name the executable", allow_module_level=True)
DRIVER = shutil.which("chromedriver")
if not DRIVER or not shutil.which("chromium"):
    pytest.skip("needs chromium and chromium-driver: scripts/setup --browser", allow_module_level=True)

SENTENCE = "And the king of the old city said unto them, that they should not go down into the valley of {} stones.\n"
CONFIG = {
    "model": {"architecture": "satformer",
              "config_overrides": {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 3, "num_heads": 4,
                                   "num_kv_heads": 2, "intermediate_size": 48, "qk_norm": True,
                                   "max_position_embeddings": 64, "tie_word_embeddings": True}},
    "data": {"seq_length": 32},
    "training": {"batch_size": 4, "gradient_accumulation_steps": 1, "learning_rate": 3e-3, "min_lr": 3e-4,
                 "warmup_steps": 2, "max_steps": 6, "dtype": "float32"},
    "checkpointing": {"checkpoint_interval": 3},
    "system": {"seed": 5, "device": "cpu"},
}


def satformer(*arguments):
    subprocess.run([CLI, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The folder of a report: SATFORMER_REPORT's, or that of a model trained for six steps."""
    if os.environ.get("SATFORMER_REPORT"):
        return pathlib.Path(os.environ["SATFORMER_REPORT"]).resolve()
    folder = tmp_path_factory.mktemp("report")
    (folder / "text.txt").write_text("".join(SENTENCE.format(i) for i in range(400)))
    satformer("prepare", "--input", folder / "text.txt", "--document-per", "line", "--vocab-size", 400,
              "--val-fraction", 0.2, "--output", folder / "data")
    CONFIG["data"]["data_dir"] = str(folder / "data")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    satformer("train", folder / "config.json", "--output", folder / "run")
    satformer("gates", folder / "run", "--every-checkpoint", "--output", folder / "report", "--text-tokens", 200)
    return folder / "report"


@pytest.fixture(scope="module")
def numbers(report):
    return json.loads((report / "gates.json").read_text())


@pytest.fixture(scope="module")
def page(report):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    browser.get((report / "report.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []  # no error and no warning, whatever the tests did
    browser.quit()


def choose(page, layer_index, head):
    Select(page.find_element(By.ID, "layer")).select_by_value(str(layer_index))
    Select(page.find_element(By.ID, "head")).select_by_value(str(head))


def token(page, index):
    return page.find_element(By.CSS_SELECTOR, f"#tokens [data-token='{index}']")


def shown_gate(text):
    return float(text.rsplit("gate ", 1)[1])


def test_hovering_shows_the_gate_that_the_json_holds(page, numbers):
    text = numbers["gates"]["text"]
    for layer_index, layer in enumerate(text["gates"]):
        for head, values in enumerate(layer["heads"]):
            choose(page, layer_index, head)
            for index in (0, 3, len(values) // 2, len(values) - 1):
                ActionChains(page).scroll_to_element(token(page, index)).move_to_element(token(page, index)).perform()
                tooltip = page.find_element(By.ID, "tooltip")
                assert tooltip.is_displayed()
                assert shown_gate(tooltip.text) == values[index]
                assert f"layer {layer['layer']}, head {head}" in tooltip.text
                assert json.dumps(text["pieces"][index], ensure_ascii=False) in tooltip.text
                assert text["classes"][index] in tooltip.text
                assert page.find_element(By.ID, "readout").text == tooltip.text


def test_the_mean_of_all_heads(page, numbers):
    heads = numbers["gates"]["text"]["gates"][0]["heads"]
    choose(page, 0, "mean")
    ActionChains(page).move_to_element(token(page, 5)).perform()
    mean = sum(values[5] for values in heads) / len(heads)
    assert shown_gate(page.find_element(By.ID, "readout").text) == pytest.approx(mean, rel=1e-6, abs=1e-12)


def test_colours_follow_the_gates(page, numbers):
    values = numbers["gates"]["text"]["gates"][0]["heads"][0]
    choose(page, 0, 0)
    strength = page.execute_script(
        "return [...document.querySelectorAll('#tokens span')].map(s => s.style.backgroundColor)")
    largest = max(range(len(values)), key=lambda i: abs(values[i]))
    assert float(strength[largest].rsplit(",", 1)[1].strip(" )")) == pytest.approx(0.85)
    for value, colour in zip(values, strength):
        assert (colour == "") == (value == 0)


def test_the_keyboard_moves_from_token_to_token(page, numbers):
    values = numbers["gates"]["text"]["gates"][0]["heads"][1]
    choose(page, 0, 1)
    page.execute_script("document.querySelector('#tokens [tabindex=\"0\"]').focus()")
    keys = ActionChains(page)
    keys.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT).perform()
    assert page.switch_to.active_element.get_attribute("data-token") == "2"
    assert shown_gate(page.find_element(By.ID, "readout").text) == values[2]
    ActionChains(page).send_keys(Keys.END, Keys.ARROW_RIGHT).perform()
    assert page.switch_to.active_element.get_attribute("data-token") == str(len(values) - 1)


def test_everything_to_press_can_be_reached_by_tab(page):
    hidden = page.execute_script(
        "return [...document.querySelectorAll('button, select, summary')].filter(e => e.tabIndex < 0).length")
    assert hidden == 0
    names = page.execute_script(
        "return [...document.querySelectorAll('select')].every(s => s.labels.length === 1 && s.labels[0].textContent)")
    assert names


def test_a_table_is_sorted_by_its_heading(page, numbers):
    table = page.find_element(By.XPATH, "//table[caption='Gates of each KV head']")
    heading = table.find_element(By.XPATH, ".//th[button='mean']")
    button = heading.find_element(By.TAG_NAME, "button")
    column = 3

    def cells():
        return [float(cell.text) for cell in table.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({column})")]

    expected = sorted(float(f"{head['mean']:.4g}") for head in numbers["gates"]["heads"])
    button.send_keys(Keys.ENTER)
    assert heading.get_attribute("aria-sort") == "ascending"
    assert cells() == pytest.approx(expected)
    button.click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert cells() == pytest.approx(expected[::-1])


def test_classes_of_a_chosen_part(page, numbers):
    select = Select(page.find_element(By.ID, "category-part"))
    head = numbers["gates"]["categories"]["heads"][1]
    select.select_by_visible_text(f"layer {head['layer']}, head {head['head']}")
    rows = page.find_elements(By.XPATH, "//table[starts-with(caption, 'Token classes: layer')]//tbody/tr")
    shown = {row.find_elements(By.TAG_NAME, "td")[0].text: row.find_elements(By.TAG_NAME, "td")[2].text for row in rows}
    assert float(shown["content"]) == pytest.approx(head["classes"]["content"]["mean"]["value"], rel=1e-3)
    assert float(shown["semantic minus functional"]) == pytest.approx(head["contrast"]["mean"]["value"], rel=1e-3)


def test_both_themes(page):
    button = page.find_element(By.ID, "theme")
    colours = []
    for _ in range(2):
        colours.append(page.execute_script(
            "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color,"
            " getComputedStyle(document.querySelector('figure svg text')).fill]"))
        button.click()
    assert all(a != b for a, b in zip(*colours))
    assert button.get_attribute("aria-pressed") in ("true", "false")


def test_nothing_is_fetched(page):
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert len(page.find_elements(By.CSS_SELECTOR, "#plots-section figure svg")) >= 10
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_screenshot(page, numbers):
    if not os.environ.get("SATFORMER_SCREENSHOT"):
        pytest.skip("SATFORMER_SCREENSHOT is not set")
    choose(page, len(numbers["gates"]["text"]["gates"]) - 1, 0)
    page.execute_script("document.getElementById('text-section').scrollIntoView()")
    ActionChains(page).move_to_element(token(page, 24)).perform()
    assert page.save_screenshot(os.environ["SATFORMER_SCREENSHOT"])
