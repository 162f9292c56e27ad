import html
import json
import re

import numpy as np
import pytest
import quickjs
from paper.theory.theory_page import theory_page
from paper.theory.worked_examples import reference_solutions
from support.external_tools import needs

from focalcal.pages.page import template
from focalcal.theory.bias import first_order_bias, pre_asymptotic_bias
from focalcal.theory.bounds import (
    entropy_bound,
    global_bound,
    interior_bound,
    interior_threshold,
    log_classes_bound,
    slope_bound,
)
from focalcal.theory.minimiser import minimise


@pytest.fixture(scope="module")
def page(study):
    return theory_page(study)


@pytest.fixture(scope="module")
def browser():
    """The page's solver and quantities, without a page: call(name, arguments...)."""
    context = quickjs.Context()
    for name in ("paper.theory/solver.js", "paper.theory/quantities.js"):
        context.eval(template(name))
    return lambda name, *arguments: json.loads(
        context.eval(f"JSON.stringify({name}({', '.join(json.dumps(one) for one in arguments)}))")
    )


def problems(count):
    """Random posteriors, some with zeros, gamma up to 8 and lam from 0 to 1e5."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        eta = rng.dirichlet(np.full(rng.choice([2, 3, 10, 100]), rng.choice([0.1, 1.0, 10.0])))
        if rng.random() < 0.2:
            eta[rng.integers(len(eta))] = 0.0
        gamma, lam = rng.choice([0.0, 0.3, 1.0, 3.0, rng.uniform(0, 8)]), rng.choice([0.0, 10 ** rng.uniform(-3, 5)])
        yield (eta / eta.sum()).tolist(), float(gamma), float(lam)


def test_the_solver_agrees_with_the_python_solver(browser):
    for eta, gamma, lam in problems(300):
        expected, found = minimise(eta, gamma=gamma, lam=lam), browser("Solver.minimise", eta, gamma, lam)
        assert found["converged"], (eta, gamma, lam)
        np.testing.assert_allclose(found["q"], expected.q, rtol=0, atol=1e-13)
        size = np.abs(expected.displacement).max()
        np.testing.assert_allclose(found["displacement"], expected.displacement, rtol=0, atol=1e-10 * size + 1e-17)
        assert found["multiplier"] == pytest.approx(float(expected.multiplier), rel=1e-10)
        assert max(found["stationarity"], found["feasibility"]) < 1e-9


def test_a_vertex_stays_where_it_is(browser):
    found = browser("Solver.minimise", [0, 1, 0], 2, 1)
    assert found["q"] == [0, 1, 0]
    assert found["displacement"] == [0, 0, 0]
    assert browser("Quantities.preAsymptoticBias", [0, 1, 0], 2, 1) == [0, 0, 0]


def test_bounds_agree(browser):
    for eta, gamma, lam in problems(100):
        if lam == 0:
            continue
        found = browser("Quantities.bounds", eta, gamma, lam)
        assert found["global"] == pytest.approx(float(global_bound(eta, gamma=gamma, lam=lam)), rel=1e-9)
        assert found["slope"] == pytest.approx(float(slope_bound(eta, gamma=gamma, lam=lam)), rel=1e-9, abs=1e-14)
        assert found["entropy"] == pytest.approx(float(entropy_bound(eta, lam=lam)), rel=1e-9)
        assert found["logClasses"] == pytest.approx(float(log_classes_bound(len(eta), lam=lam)), rel=1e-12)
        assert found["threshold"] == pytest.approx(float(interior_threshold(eta, gamma=gamma)), rel=1e-9)
        interior = float(interior_bound(eta, gamma=gamma, lam=lam))
        assert found["interior"] == (pytest.approx(interior, rel=1e-12) if np.isfinite(interior) else None)


def test_some_posteriors_have_an_interior_bound(browser):
    assert browser("Quantities.bounds", [0.5, 0.3, 0.2], 2, 1000)["interior"] == pytest.approx(6 * 3**0.5 / 1000)


def test_predictions_agree(browser):
    for eta, gamma, lam in problems(100):
        newton = pre_asymptotic_bias(eta, gamma=gamma, lam=lam)
        np.testing.assert_allclose(browser("Quantities.preAsymptoticBias", eta, gamma, lam), newton, atol=1e-12)
        found = browser("Quantities.firstOrderBias", eta, gamma, lam)
        if lam == 0:
            assert found is None
        else:
            expected = first_order_bias(eta, gamma=gamma, lam=lam)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 / lam)


def test_decisions(browser):
    assert browser("Quantities.decision", [0.2, 0.5, 0.3]) == 1
    assert browser("Quantities.decision", [0.4, 0.4, 0.2]) == -1


def test_the_page_needs_no_network(page):
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    sources = re.findall(r"\b(?:src|href)\s*=\s*\"([^\"]*)\"", page)
    assert [source[:26] for source in sources if not source.startswith("#")] == ["data:image/svg+xml;base64,"]
    assert not re.search(r"@import|url\((?!#)|\bfetch\(|XMLHttpRequest|import\(", page.replace("url(#inside)", ""))


def test_the_page_embeds_reference_solutions(page):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["references"] == reference_solutions()
    assert len(data["references"]) >= 12
    assert {len(one["eta"]) for one in data["references"]} == {3, 10, 100}
    for one in data["references"]:
        exact = minimise(one["eta"], gamma=one["gamma"], lam=one["lam"]).q
        np.testing.assert_allclose(one["q"], exact, rtol=1e-11)


def test_every_element_that_the_script_asks_for_is_there(page):
    asked = set(re.findall(r'get\("([\w-]+)"\)', template("paper.theory/page.js")))
    assert len(asked) > 10
    present = re.findall(r'\bid="([\w-]+)"', page)
    assert asked <= set(present)
    assert len(present) == len(set(present))


def test_every_control_has_a_label(page):
    controls = re.findall(r"<(?:input|select|textarea)\b[^>]*>", page)
    assert len(controls) == 7
    for control in controls:
        name = re.search(r'id="([\w-]+)"', control)[1]
        assert "aria-label=" in control or f'<label for="{name}"' in page or f"<label>{control}" in page, control


def test_the_tables_are_on_the_page(page, study):
    text = html.unescape(page)
    assert all(name in text for name in study.cases["posterior"])
    assert f"{np.median(study.cases['slope_from_128']):.3f}".replace("-", "\N{MINUS SIGN}") in text
    assert page.count("<tr>") == 5 + sum(
        len(part["gamma"]) for part in (study.cases, study.injection, study.calibration_slopes)
    ) + len(study.paper["ours"])


needs_chromium = needs("chromium")


def opened(tab, page, folder, state):
    """What the page looks like, as HTML, after a browser has run it."""
    (folder / "index.html").write_text(page, encoding="utf-8")
    return tab.open(folder / "index.html", fragment=state).evaluate("document.documentElement.outerHTML")


@needs_chromium
@pytest.mark.parametrize(
    "state", ["gamma=3&lam=1", "gamma=0&lam=0&preset=7&arrows=1", "gamma=x&eta=0.1,-1", "eta=1,0,0"]
)
def test_the_page_runs_in_a_browser(tab, page, tmp_path, state):
    shown = opened(tab, page, tmp_path, state)
    assert re.search(r'id="check"[^>]*class="good">checked against the reference solver on \d+ problems', shown)
    for name in ("l2", "kept", "slope", "global", "first", "newton", "multiplier", "steps"):
        assert re.search(rf'id="out-{name}">(?!NaN)[^<]+<', shown), name
    assert not re.search(r'(?:d|x|y|height|transform)="[^"]*(?:NaN|Infinity|undefined)', shown)


@needs_chromium
@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("eta=0.1,-1", "eta: every number must be at least 0, got -1"),
        ("preset=length", 'preset must be a whole number below 8, got "length"'),
        ("gamma=&lam=1", 'gamma must be a number from 0 to 8, got ""'),
        ("gamma=1&lam=1e9", 'lam must be a number from 0 to 100000, got "1e9"'),
    ],
)
def test_what_the_address_asks_for_wrongly_is_said(tab, page, tmp_path, state, said):
    shown = opened(tab, page, tmp_path, state)
    note = re.search(r'id="eta-note"[^>]*>([^<]*)<', shown)[1]
    assert html.unescape(note) == f"Left out of the address: {said}"
    assert re.search(r'id="out-l2">0\.\d+<', shown)


def test_every_quantity_has_a_formula(page):
    shown = re.findall(r"<dt>(.*?)</dt><dd id=", page)
    explained = re.findall(r"<dt>(.*?)</dt><dd>", page)
    assert len(shown) > 12
    assert {name.removeprefix("bound: ") for name in explained} >= set(shown)


def test_signs_are_typeset(page):
    body = html.unescape(re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL))
    assert not re.search(r">=|<=|Cal2|\|_inf", body)
    assert "over lam \N{GREATER-THAN OR EQUAL TO} 128" in body
    assert "slope of Cal\u2082\u00b2, gamma = 2" in body


PROBE = """() => {
const get = (id) => document.getElementById(id);
const tell = (element, kind, value) => {
  if (value !== undefined) element.value = value;
  element.dispatchEvent(new Event(kind, { bubbles: true }));
};
const seen = {};
const handle = document.querySelector(".handle");
handle.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp" }));
seen.arrowUp = get("eta").value;
const corner = get("simplex").getBoundingClientRect();
get("simplex").setPointerCapture = () => {};
const at = { clientX: corner.left + corner.width / 2, clientY: corner.top + 5, pointerId: 1 };
get("simplex").dispatchEvent(new PointerEvent("pointerdown", { ...at, pointerType: "touch" }));
seen.touchedBeside = get("eta").value;
seen.touchActions = [get("simplex"), handle.firstChild].map((shape) => getComputedStyle(shape).touchAction);
get("simplex").dispatchEvent(new PointerEvent("pointerdown", at));
seen.draggedToTheTop = get("eta").value;
tell(get("eta"), "input", "2 1, 1");
seen.note = get("eta-note").textContent;
seen.preset = get("preset").value;
seen.address = location.hash;
tell(get("eta"), "input", "0.5 -1");
seen.refused = [get("eta-note").textContent, get("eta").getAttribute("aria-invalid")];
tell(get("lam"), "input", "-3.05");
seen.lam = [get("lam-number").value, get("out-global").textContent];
tell(get("gamma-number"), "input", "2.5");
seen.gamma = get("gamma").value;
const row = () => [...get("classes").rows[0].cells].map((cell) => cell.textContent);
tell(get("eta"), "input", "0.7 0.2 0.1");
tell(get("gamma"), "input", "3");
tell(get("lam-number"), "input", "1");
seen.row = row();
seen.inside = get("outside").textContent;
tell(get("lam-number"), "input", "0.01");
seen.outside = get("outside").textContent;
tell(get("eta"), "input", "1 1 0.5");
seen.tie = get("out-kept").textContent;
tell(get("preset"), "change", "5");
seen.outsideBars = get("outside").textContent;
seen.marks = [...document.querySelectorAll("[data-mark]")].filter((shape) => !shape.getAttribute("d")).length;
seen.bars = [get("simplex").hasAttribute("hidden"), get("bars").hasAttribute("hidden"), get("classes").rows.length];
return seen;
}"""


@needs_chromium
def test_the_controls_work(tab, page, tmp_path):
    opened(tab, page, tmp_path, "gamma=3&lam=1&eta=0.5,0.3,0.2")
    assert tab.page.evaluate(PROBE) == {
        "arrowUp": "0.51, 0.295, 0.195",
        "touchedBeside": "0.51, 0.295, 0.195",  # a finger there may want to scroll
        "touchActions": ["pan-y", "none"],
        "draggedToTheTop": "1, 0, 0",
        "note": "they sum to 4 and were divided by it",
        "preset": "-1",
        "address": "#gamma=3&lam=1&eta=0.5,0.25,0.25",
        "refused": ["every number must be at least 0, got -1", "true"],
        "lam": ["0", "\N{INFINITY}"],
        "gamma": "2.5",
        "row": ["1", "0.7", "0.567", "\N{MINUS SIGN}0.133", "\N{MINUS SIGN}0.3716", "\N{MINUS SIGN}0.121"],
        "inside": "",
        "outside": "Outside the plot: the first-order prediction.",
        "tie": "tie: no single largest class",
        "outsideBars": "Outside the plot: the first-order prediction.",
        "marks": 0,
        "bars": [True, False, 10],
    }
