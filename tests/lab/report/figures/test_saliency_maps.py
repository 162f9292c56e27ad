import io

import numpy as np
import pytest
from support.figure_runs import faults, font_sizes, predicted, stored

from focalcal.lab.report.figures.saliency_views import saliency_view
from focalcal.lab.store import Spec


@pytest.fixture(scope="module")
def shown(trained):
    return saliency_view(trained["saliency"])


def with_maps(store, tmp_path, **arrays):
    path = tmp_path / "maps.npz"
    path.write_bytes(npz(**arrays))
    spec = Spec(data_set="<b>$x_$", model="cnn", objective="fcl", seed=0, training={})
    record = {"metrics": {}, "provenance": {"data": {"classes": ["no", "finding $\\frac$"]}}, "seconds": 1, "epochs": 1}
    return store.add(spec, record=record, epochs=None, predictions=[predicted()], files={"saliency.npz": path})


def npz(**arrays):
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()


def test_the_frame_says_what_was_predicted_and_where_it_looked(shown, trained):
    with np.load(trained["saliency"].file("saliency.npz")) as stored_arrays:
        arrays = dict(stored_arrays)
    frame = shown.frame().columns
    assert list(frame["id"]) == arrays["ids"].tolist()
    assert list(frame["predicted"]) == [str(one) for one in arrays["predicted"]]
    assert list(frame["truth"]) == [str(one) for one in arrays["labels"]]
    test = trained["saliency"].predictions("test")
    assert list(map(int, frame["predicted"])) == test.logits[:5].argmax(1).tolist()
    np.testing.assert_allclose(frame["highest"], arrays["maps"].max((1, 2)))
    height, width = arrays["maps"].shape[1:]
    for at, (across, down) in enumerate(zip(frame["across"], frame["down"], strict=True)):
        assert arrays["maps"][at, int(down * height), int(across * width)] == arrays["maps"][at].max()


def test_each_image_is_drawn_alone_and_below_its_map(shown):
    figure, maps = shown.plot(), shown.facts["maps"]
    for number in range(5):
        above, below = figure.axes[number], figure.axes[5 + number]
        np.testing.assert_array_equal(above.images[0].get_array(), shown.facts["images"][number][0])
        image, heat = below.images
        np.testing.assert_array_equal(image.get_array(), shown.facts["images"][number][0])
        np.testing.assert_allclose(heat.get_array(), maps[number] / max(maps[number].max(), 1e-300))
        assert heat.get_extent() == image.get_extent()
        assert above.get_title().startswith(shown.rows[number]["id"])
    assert faults(figure) == []
    assert min(font_sizes(figure)) >= 7


def test_several_labels_colours_and_a_map_of_zeros(store, tmp_path):
    run = with_maps(
        store,
        tmp_path,
        maps=np.zeros((2, 2, 2), "float32"),
        predicted=np.array([1, 0]),
        labels=np.array([[True, True], [False, False]]),
        ids=np.array(["$a_$", "b" * 60]),
        images=np.zeros((2, 3, 8, 8), "uint8"),
    )
    display = saliency_view(run, objective="fcl $\\lam$")
    frame = display.frame().columns
    assert list(frame["truth"]) == ["no, finding $\\frac$", "none"]
    assert list(frame["predicted"]) == ["finding $\\frac$", "no"]
    figure = display.plot()
    assert figure.axes[0].images[0].get_array().shape == (8, 8, 3)
    assert [text.get_text() for text in figure.axes[2].texts] == ["map is 0"]
    assert faults(figure) == []


def test_a_run_without_maps_has_no_figure(store):
    assert saliency_view(stored(store)) is None


@pytest.mark.parametrize("arrays", [{"maps": np.zeros((2, 2, 2))}, {name: np.zeros(3) for name in
    ("maps", "predicted", "labels", "ids", "images")}])  # fmt: skip
def test_a_file_of_something_else_is_refused(store, tmp_path, arrays):
    with pytest.raises(ValueError, match=r"saliency\.npz must hold"):
        saliency_view(with_maps(store, tmp_path, **arrays))
