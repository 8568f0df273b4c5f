// SPDX-License-Identifier: MIT
// The contract of the interop and differential tests: an event, views and three kinds of revert.
// Compiled to Probe.json by solc 0.8.37, optimizer on, EVM version paris.
pragma solidity ^0.8.0;

contract Probe {
    event Noted(address indexed who, uint256 indexed key, string text);
    error Refused(uint256 code, string why);

    mapping(uint256 => uint256) public values;

    function note(uint256 key, uint256 value, string calldata text) external {
        values[key] = value;
        emit Noted(msg.sender, key, text);
    }

    function sum(uint256 a, uint256 b) external pure returns (uint256) {
        return a + b;
    }

    function echo(string calldata text) external pure returns (string memory) {
        return text;
    }

    function refuse(uint256 code) external pure {
        revert Refused(code, "not \"today\" {}");
    }

    function fail() external pure {
        revert("plain reason {}");
    }

    function panic(uint256 a) external pure returns (uint256) {
        return 1 / a;
    }
}
