"""Configurations of other frameworks over HTTP. They are read as text; no file that they name is
opened, and nothing in them is run."""

from coloop.errors import ImportRefused
from coloop.interop.bring import import_text, shown
from coloop.interop.reading import Source
from coloop.spec.io import parse, require
from coloop_server.checks import service
from coloop_server.checks.schemas import LoopInput
from coloop_server.dependencies import SettingsOf
from coloop_server.errors import Invalid, router_of
from coloop_server.frameworks.schemas import Configuration, ImportedLoop, SettingFate
from coloop_server.presets.gallery import sketch_of

router = router_of("frameworks")


@router.post("/frameworks/import", operation_id="importConfiguration")
def import_configuration(body: Configuration, settings: SettingsOf) -> ImportedLoop:
    """Make a loop of a configuration of TRL, verl or OpenRLHF, with its findings and estimate. It
    is not saved."""
    try:
        imported = import_text(
            body.text,
            name=body.name or "the text",
            source=Source(gpu=body.gpu, gpus=body.gpus),
            others=body.others,
        )
    except ImportRefused as refused:
        raise Invalid(refused.code, str(refused)) from refused
    return ImportedLoop(
        framework=imported.framework,
        version=imported.version,
        trainer=imported.trainer,
        name=imported.name,
        yaml=imported.text,
        settings=[
            SettingFate(
                name=fate.name,
                value=shown(fate.value),
                line=fate.line,
                kind=fate.kind,
                to=fate.to,
                why=fate.why,
            )
            for fate in imported.settings
        ],
        assumptions=list(imported.assumptions),
        sketch=sketch_of(require(parse(imported.text))),
        check=service.check(LoopInput(yaml=imported.text), settings),
    )
