"""Whoever comes from Letta, Kaizen or the book finds every name that they know, and what we export is explained."""

import re
from pathlib import Path

import pytest

from muster_client import seeds

PAGE = (Path(__file__).parents[2] / "docs" / "from-the-seeds.md").read_text(encoding="utf-8")
LETTA = """
SupervisorMultiAgent supervisor_multi_agent dynamic_multi_agent round_robin_multi_agent sleeptime_multi_agent BaseAgent
step chaining max_chaining_steps Group GroupManager group_id agent_ids manager_agent_id manager_type ManagerConfig
SupervisorManager DynamicManager RoundRobinManager termination_token max_turns sleeptime_agent_frequency turns_counter
last_processed_message_id max_message_buffer_length min_message_buffer_length hidden GroupsBlocks AgentInterface
send_message_to_all_agents_in_group LettaUsageStatistics ToolRule InitToolRule ChildToolRule TerminalToolRule
MaxCountPerStepToolRule requires_force_tool_call mcp_connect_to_server_timeout mcp_list_tools_timeout block_ids
mcp_execute_tool_timeout tool_sandbox_timeout match_all match_some memory_blocks archival_memory_insert SharedBlocks
archival_memory_search client.agents.create client.blocks.create client.archives.create client.agents.messages.create
archives.attach client.agents.delete
"""
KAIZEN = """
SharedMemoryPool BaseAgentConfig llm_provider logging_enabled SupervisorAgent WorkerAgent CoordinatorAgent agent_id
delegate available_workers num_tasks get_assigned_tasks execute_task aggregate_results final_result task_results
check_all_tasks_completed check_failures reassign_task new_worker monitor_progress active_workers pending_tasks
completed_tasks resolve_conflicts supervisor_worker_workflow num_workers pending completed conflict progress importance
segments read_relevant read_all get_stats assigned_to
"""
BOOK = """
Supervisor Worker Task Plan TaskStatus worker_type dependencies final_instruction run execute system_prompt tools
tool_handlers _decompose _execute_plan _aggregate _execute_with_retry _refine_task _build_prompt max_retries context
RateLimitedExecutor max_concurrent requests_per_minute execute_tasks temperature search_tool_schema calculator_schema
db_query_schema scrape_tool_schema formatter_schema merge select reduce retries
"""


@pytest.mark.parametrize("name", f"{LETTA} {KAIZEN} {BOOK}".split())
def test_every_name_that_a_reader_comes_with_leads_somewhere(name: str):
    assert re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", PAGE)


@pytest.mark.parametrize("name", sorted({*seeds.__all__} - {"Failed", "TaskDict"}))  # of which the last two are shapes
def test_what_can_be_imported_is_explained(name: str):
    assert re.search(rf"`{name}\b", PAGE)
