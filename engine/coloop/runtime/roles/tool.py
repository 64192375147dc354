"""A tool has no stage of its own; policies call it while they generate. The role holds its state
for the whole run: an index, processes of environments.
"""

from coloop.data.prompting import PromptProgram
from coloop.data.sources import open_source
from coloop.data.tools import bridges
from coloop.data.tools.builtin import Calculator, Index, PythonTool, Search, texts_of
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.instances import UserEnvironment
from coloop.data.tools.proof import ProofEnvironment
from coloop.data.tools.protocol import Tool
from coloop.runtime.roles.generation.policy_tool import PolicyTool
from coloop.runtime.roles.protocol import Context, NodeRole
from coloop.runtime.roles.rows.outside import code_of, environment_of
from coloop.spec.installed import load
from coloop.spec.nodes import DatasetNode, ToolNode
from coloop.spec.tools import PLUGINS


class ToolRole(NodeRole[ToolNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        self.section = self._section(context)
        self.tool: Tool | PolicyTool = self._built(context)

    def _built(self, context: Context) -> Tool | PolicyTool:
        section = self.section
        match section.type:
            case "calculator":
                return Calculator()
            case "search":
                return Search(self._index(context), section.top_k)
            case "python":
                return PythonTool(self._node, section.timeout_seconds)
            case "environment":
                return self._environment(context)
            case "model":
                return self._policy(context)
        made: Tool = load(PLUGINS[section.type].tool, section.type)(section)
        return made

    def _policy(self, context: Context) -> PolicyTool:
        [edge] = context.spec.graph.edges_into(self._node, "policy")
        template = self.section.template
        assert template is not None
        program = PromptProgram.from_template(template, node=self._node)
        policy = edge.source.node
        return PolicyTool(node=self._node, section=self.section, policy=policy, program=program)

    def _index(self, context: Context) -> Index:
        [edge] = context.spec.graph.edges_into(self._node, "documents")
        giver = edge.source.node
        dataset = context.spec.nodes[giver]
        assert isinstance(dataset, DatasetNode)
        source = open_source(dataset, node_id=giver, root=context.root)
        rows = [source.row(index) for index in range(len(source))]
        return Index(texts_of(rows, self.section.column or "text", self._node, giver))

    def _environment(self, context: Context) -> EnvironmentTool:
        section = self.section
        if section.name is not None:
            return EnvironmentTool(ProofEnvironment())
        if section.source is not None:
            environment = environment_of(self._node, section.source, 1, context)
        else:
            code = bridges.instances(code_of(self._node, section, "file", context))
            environment = UserEnvironment(self._node, code, section.timeout_seconds)
        environment.check()
        return EnvironmentTool(environment)

    def take_printed(self) -> str:
        """What a user's environment has printed since the last call. What a tool's code prints is
        its answer."""
        return self.tool.take_printed() if isinstance(self.tool, EnvironmentTool) else ""

    def close(self) -> None:
        """End the processes of the tool."""
        if not isinstance(self.tool, PolicyTool):
            self.tool.close()
