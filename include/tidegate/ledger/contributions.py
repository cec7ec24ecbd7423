"""What windows brought to partitions, as announced last: lineage in both directions (PC-C09)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.ledger import rows
from tidegate.ledger.connect import reading
from tidegate.ledger.schema import contribution, partition
from tidegate.ledger.setting_aside import CONTRIBUTIONS

if TYPE_CHECKING:
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition


@dataclass(frozen=True)
class Contributions:
    """The contributions of one pipeline, as announced last; read here, and written by announces."""

    engine: sa.Engine
    name: str

    def to(self, target: Partition) -> tuple[Contribution, ...]:
        """Return what each window brought to one partition, by window.

        Also what is set aside, or was reset since: see `tidegate.model.counting`.
        """
        mine = {"pipeline": self.name, "partition": target.path}
        with reading(self.engine) as connection:
            found = connection.execute(CONTRIBUTIONS, mine).mappings()
            return tuple(rows.read_contribution(row, target) for row in found)

    def of_window(self, sequence: int) -> tuple[Contribution, ...]:
        """Return what one window contributed, by partition.

        Lineage from source to partitions (PC-C09).
        """
        query = (
            sa.select(contribution, partition.c["values"].label("partition_values"))
            .join_from(
                contribution,
                partition,
                sa.and_(
                    partition.c.pipeline == contribution.c.pipeline,
                    partition.c.partition == contribution.c.partition,
                ),
            )
            .where(contribution.c.pipeline == self.name, contribution.c.window == sequence)
            .order_by(contribution.c.partition)
        )
        with reading(self.engine) as connection:
            return tuple(
                rows.read_contribution(row, rows.read_partition(row["partition_values"]))
                for row in connection.execute(query).mappings()
            )
